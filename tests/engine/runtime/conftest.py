"""What tests of the engine thread share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.tiny_files import write_tiny_gguf


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    yield engine
    engine.shutdown()


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model; tests that want another one have one of their own by this name."""
    return write_tiny_gguf(tmp_path_factory.mktemp("model"))
