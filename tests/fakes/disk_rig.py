"""For tests of states on disk: parks one request by hand, waits for its file, asks to go on with it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from engine.api import (
    Command,
    EngineEvent,
    EnginePort,
    Failed,
    Parked,
    Request,
    Resumed,
    SamplingParams,
    TokenDelta,
)
from engine.errors import ResumeRefused
from engine.runs import ParkNow
from engine.runtime.disk.state_folder import SUFFIX
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, settled

ID = "chat-1-2"
PARKED_AT = 70
REPLY_TOKENS = 150
LONG = 2048
"""Tokens in a pool in which nobody is parked but by hand."""


def durable(**fields: object) -> Request:
    return ask(ID, max_tokens=REPLY_TOKENS, is_durable=True, **fields)


def comeback() -> Request:
    """Asks for nothing but what the state on disk says."""
    return ask(ID, max_tokens=1, sampling=SamplingParams(seed=99), is_durable=True, resumes=True)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".layby"))


def command_at(engine: EnginePort, at_token: int, *commands: Command, of: str = ID) -> None:
    """Give commands once a request has that many tokens more: on the engine thread, before the next step."""
    heard = 0

    def listen(events: tuple[EngineEvent, ...]) -> None:
        nonlocal heard
        for event in events:
            if isinstance(event, TokenDelta) and event.request_id == of and heard < at_token:
                heard += len(event.token_ids)
                if heard >= at_token:
                    stop()
                    for command in commands:
                        engine.control(command)

    stop = engine.subscribe(listen)


def command_at_park(engine: EnginePort, *commands: Command) -> None:
    """Give commands once anybody has been parked: on the engine thread, before the next step."""

    def listen(events: tuple[EngineEvent, ...]) -> None:
        if any(isinstance(event, Parked) for event in events):
            stop()
            for command in commands:
                engine.control(command)

    stop = engine.subscribe(listen)


def park(engine: EnginePort, request: Request, *, at_token: int = PARKED_AT) -> Ear:
    """Ask, and park by hand once that many tokens are there."""
    ear = Ear(engine)
    command_at(engine, at_token, ParkNow(request_id=request.request_id), of=request.request_id)
    engine.submit(request)
    ear.wait_for(lambda event: isinstance(event, Parked), "the park")
    ear.close()
    return ear


def wait_on_disk(engine: Engine, folder: Path) -> None:
    """Until the engine thread has put the file in its place."""
    done = threading.Event()
    while not done.is_set():
        settled(engine)
        if files(folder) == [f"{ID}{SUFFIX}"]:
            done.set()


def resumed(ear: Ear) -> Resumed:
    event = ear.wait_for(lambda event: isinstance(event, Resumed), "the comeback")
    assert isinstance(event, Resumed)
    return event


def settled_without_files(engine: Engine, folder: Path) -> bool:
    """Whether no file is left in the end, however long the thread that writes takes to hear of it."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        settled(engine)
        if not files(folder):
            return True
    return False


def refusal_of(engine: Engine) -> str:
    end = run_all(engine, [comeback()]).wait_end(ID)
    assert isinstance(end, Failed)
    assert isinstance(end.error, ResumeRefused)
    return str(end.error)
