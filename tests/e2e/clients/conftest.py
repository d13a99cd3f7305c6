"""One server on the starter model for all tests of clients in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.client_rig import Rig, open_rig


@pytest.fixture(scope="session")
def rig(starter_model: Path) -> Iterator[Rig]:
    with open_rig(starter_model) as rig:
        yield rig
