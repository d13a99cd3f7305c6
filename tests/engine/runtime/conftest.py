"""What tests of the engine thread share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.factory import create_engine
from engine.runtime.engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    yield engine
    engine.shutdown()
