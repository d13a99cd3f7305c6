"""Strictness for every test: nobody reads the user's own data, and logs of WARNING and above fail unless expected."""

from __future__ import annotations

import gc
import inspect
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # workers share the cores: nobody spins

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_finish() -> None:
    """What is there by now stays: no collection of garbage need walk it, and each test of the window asks for one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has data, cache and settings folders of its own, and none of the user's LAYBY_ variables."""
    for name in [name for name in os.environ if name.startswith("LAYBY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAYBY_HOME", str(tmp_path / "layby-home"))


@pytest.fixture(autouse=True)
def _no_unexpected_log(
    caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Fail on a log record of WARNING or above, unless the test asked for `caplog` to look at it itself."""
    yield
    if "caplog" in inspect.signature(request.function).parameters:
        return
    loud = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.WARNING]
    assert not loud, f"unexpected log: {loud}"


@pytest.fixture(autouse=True)
def _no_dangling_thread() -> Iterator[None]:
    """Fail a test that leaves a thread of ours running."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and t.name.startswith("layby")]
    for thread in left:
        thread.join(timeout=10)
    assert not [t for t in left if t.is_alive()], f"threads left running: {left}"


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """The folder of shared cases beside the checkout; a test that needs it is skipped where it is absent."""
    folder = ROOT.parent / "shared" / "cases"
    if not folder.is_dir():
        pytest.skip("the folder shared/cases is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The starter model that `python dev.py test` has put below .cache; a test that needs it fails without it."""
    found = sorted((ROOT / ".cache" / "home").rglob("SmolLM2-135M-Instruct.Q4_1.gguf"))
    assert found, "the starter model is missing: run the tests with `python dev.py test`"
    return found[0]
