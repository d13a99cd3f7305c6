"""The whole fuzz run takes minutes: it is left out, as deselected, unless `-m` asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "full" in config.getoption("markexpr"):
        return
    here = Path(__file__).parent
    whole = [
        item for item in items if here in item.path.parents and item.get_closest_marker("full")
    ]
    if whole:
        config.hook.pytest_deselected(items=whole)
        items[:] = [item for item in items if item not in whole]
