"""The engine and a model's hash that does not come: nobody waits without a limit, and whoever loses by it is told."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from engine.api import Command, Failed, UnloadModel
from engine.errors import ParkDiskFailed, ResumeRefused
from engine.runs import Suspend
from engine.runtime.disk import disk_worker
from engine.runtime.disk.disk_worker import DiskWorker, ModelFiles
from engine.runtime.disk.state_folder import StateFolder
from engine.runtime.engine import Engine
from engine.runtime.messages import StateRead, StateWritten
from fakes.disk_rig import LONG, command_at, files
from fakes.listening import Ear
from fakes.odd_files import outcome_of
from fakes.parking_rig import ask, load
from fakes.saved_states import state
from fakes.tiny_files import write_tiny_gguf

NAMES = ("r0", "r1", "r2")


class NeverKnown(Future[str]):
    """Says at once that it was waited for in vain, and notes for how long it would have been."""

    def __init__(self, asked_s: list[float | None]) -> None:
        super().__init__()
        self._asked_s = asked_s

    def result(self, timeout: float | None = None) -> str:
        self._asked_s.append(timeout)
        raise TimeoutError


@pytest.mark.parametrize(
    "commands",
    [(UnloadModel(),), tuple(Suspend(request_id=name) for name in NAMES)],
    ids=["unloading", "closing the window"],
)
def test_all_chats_together_wait_ten_seconds_for_the_hash_and_are_told(
    engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    commands: tuple[Command, ...],
) -> None:
    asked_s: list[float | None] = []

    def start_without_thread(worker: DiskWorker) -> None:
        worker.sha256 = NeverKnown(asked_s)

    monkeypatch.setattr(DiskWorker, "start", start_without_thread)
    folder = tmp_path / "parked"
    load(engine, write_tiny_gguf(tmp_path), pool_tokens=LONG, preempt_disk=folder, parallel=3)
    ear = Ear(engine)
    command_at(engine, 5, *commands, of=NAMES[-1])
    for name in NAMES:
        engine.submit(ask(name, max_tokens=600, is_durable=True))
    for name in NAMES:
        end = ear.wait_end(name)
        assert isinstance(end, Failed)
        assert isinstance(end.error, ParkDiskFailed)
        assert "hash" in str(end.error)
        assert f"{name}: {end.error}" in caplog.messages
    assert len(asked_s) == len(NAMES)
    assert sum(one for one in asked_s if one is not None) == 10.0
    assert None not in asked_s
    assert files(folder) == []


def worker_of(folder: Path, outcomes: list[StateWritten | StateRead]) -> DiskWorker:
    model = ModelFiles("tiny", "float16", 96, lambda page: True, (folder / "weights",))
    return DiskWorker(StateFolder.open(folder), model, outcomes.append)


def test_whatever_goes_wrong_with_the_hash_is_told_and_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_args: object) -> str:
        raise ZeroDivisionError("a surprise")

    monkeypatch.setattr(disk_worker, "model_sha256", broken)
    outcomes: list[StateWritten | StateRead] = []
    worker = worker_of(tmp_path, outcomes)
    worker.start()
    error = outcome_of(lambda: worker.sha256.result(20))
    assert isinstance(error, OSError)
    assert "a surprise" in str(error)
    half = worker.folder.write(state(), [])
    assert half is not None
    worker.folder.put(half, "chat-1-2")
    answered = threading.Event()

    def hear(outcome: StateWritten | StateRead) -> None:
        outcomes.append(outcome)
        answered.set()

    worker.deliver = hear
    worker.read("chat-1-2")
    assert answered.wait(20)
    worker.close()
    worker.folder.close()
    assert "ZeroDivisionError" in caplog.text
    (read,) = outcomes
    assert isinstance(read, StateRead)
    assert isinstance(read.outcome, ResumeRefused)


def test_a_thread_that_hangs_in_a_disk_is_not_waited_for_longer_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hangs, may_end = threading.Event(), threading.Event()

    def hanging(*_args: object) -> str:
        hangs.set()
        may_end.wait(60)
        return "late"

    monkeypatch.setattr(disk_worker, "model_sha256", hanging)
    monkeypatch.setattr(disk_worker, "_END_WAIT_S", 0.01)
    worker = worker_of(tmp_path, [])
    worker.start()
    assert hangs.wait(20)
    assert outcome_of(worker.close) is None
    may_end.set()
    worker.folder.close()
    assert "has not answered" in caplog.text
