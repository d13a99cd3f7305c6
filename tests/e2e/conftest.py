"""The starter model, served once for all end-to-end tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.serving import TEST_HOME, serving


@pytest.fixture(scope="session")
def served(starter_model: Path) -> Iterator[str]:
    """The starter model, served as issue and README show it; one for all tests of a worker."""
    assert starter_model.is_relative_to(TEST_HOME)
    with serving("-m", "smollm2-135m", "-c", "4096", "-np", "4") as address:
        yield address
