"""What the window takes from the engine while four panes stream in it: of its speed, and of a core.

Run: python tests/bench/bench_window.py MODEL [--rounds N] [--tokens N]. Each round compares twice. The same four
requests in a process with the window and in one without, which is the whole truth on a quiet machine; and in the
process with the window, second by second in turns, the window seen and as if it were minimised, which other work
disturbs less. The window's share is what its thread takes of one core. Not collected by pytest; QT_QPA_PLATFORM is
"offscreen" if not set.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.api import (
    EngineEvent,
    EnginePort,
    EngineState,
    Failed,
    Finished,
    LoadModel,
    ModelChanged,
    SamplingParams,
    TokenDelta,
)
from engine.factory import create_engine
from fakes.at_once import NEVER_ENDS
from fakes.real_window import paths_below
from studio.app import open_services
from studio.models.chat import Conversation, Message, Role
from studio.models.chat_settings import ChatSettings
from studio.services.chat_prompt import request_for
from studio.services.settings_service import SettingsService

if TYPE_CHECKING:
    from studio.views.main_window import MainWindow

PROMPTS = (
    "Tell me a long story about a lighthouse, with headings and lists.",
    "Explain how a compiler works, with examples of code.",
    "Describe twelve cities, each with its history, in a numbered list.",
    "Write a long letter to a friend about a journey by train.",
)
WINDOW_PX, POOL_TOKENS, WARM_TOKENS = (1920, 1080), 8192, 16
TICK_S, TURN_S, SETTLE_S = 0.02, 0.5, 0.1
ROLES = ("none", "window", "turns")


@dataclass(frozen=True, slots=True)
class Reading:
    """Tokens of all replies, wall seconds, and CPU seconds of the window's thread, up to a moment."""

    tokens: int
    wall_s: float
    cpu_s: float


class Clock:
    """Hears, on the engine's thread, what is written; reads the CPU time of the thread it was made on.

    `began` is when all replies had their first tokens, `ended` when one of them had all.
    """

    def __init__(self) -> None:
        self.began: Reading | None = None
        self.ended: Reading | None = None
        self.is_over = threading.Event()
        self._written: dict[str, int] = {}
        self._cpu = time.pthread_getcpuclockid(threading.get_ident())

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, TokenDelta):
                count = self._written.get(event.request_id, 0) + len(event.token_ids)
                self._written[event.request_id] = count
            elif isinstance(event, Finished | Failed) and self.ended is None:
                self.ended = self.read()
                self.is_over.set()
        is_warm = len(self._written) == len(PROMPTS) and min(self._written.values()) >= WARM_TOKENS
        if self.began is None and is_warm:
            self.began = self.read()

    def read(self) -> Reading:
        return Reading(
            sum(self._written.values()), time.perf_counter(), time.clock_gettime(self._cpu)
        )


@dataclass(slots=True)
class Total:
    """What was written in some stretches of time, and what that took."""

    tokens: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def add(self, before: Reading | None, after: Reading | None) -> None:
        assert before is not None
        assert after is not None
        self.tokens += after.tokens - before.tokens
        self.wall_s += after.wall_s - before.wall_s
        self.cpu_s += after.cpu_s - before.cpu_s

    @property
    def speed(self) -> float:
        return self.tokens / self.wall_s

    @property
    def share(self) -> float:
        return self.cpu_s / self.wall_s


def chat_settings(number: int, tokens: int) -> ChatSettings:
    sampling = SamplingParams(temperature=0.8, seed=number, logit_bias=NEVER_ENDS)
    return ChatSettings(sampling=sampling, max_tokens=tokens)


def settings(home: Path, model: Path) -> SettingsService:
    flags: dict[str, str | int] = {
        "engine.model": str(model),
        "engine.ctx_size": POOL_TOKENS,
        "engine.parallel": 4,
    }
    return SettingsService(home / "settings.json", environment={}, flags=flags)


# --- without a window


def without_window(model: Path, tokens: int) -> dict[str, float]:
    engine, is_ready, clock = create_engine(), threading.Event(), Clock()

    def hear(events: tuple[EngineEvent, ...]) -> None:
        if any(isinstance(e, ModelChanged) and e.state is EngineState.READY for e in events):
            is_ready.set()

    engine.subscribe(hear)
    options = settings(Path(tempfile.mkdtemp()), model).settings.load_options()
    engine.control(LoadModel(path=model, name=model.stem, options=options))
    assert is_ready.wait(120)
    engine.subscribe(clock.hear)
    for number, prompt in enumerate(PROMPTS):
        chat = Conversation(number + 1, "", 0.0, 0.0, is_loaded=True)
        chat.settings = chat_settings(number, tokens)
        chat.append(Message(1, chat.chat_id, Role.USER, prompt, 0.0))
        chat.append(Message(2, chat.chat_id, Role.ASSISTANT, "", 0.0))
        engine.submit(request_for(chat, chat.messages[-1]))
    assert clock.is_over.wait(600)
    engine.shutdown()
    total = Total()
    total.add(clock.began, clock.ended)
    return {"speed": total.speed}


# --- with it


def with_window(model: Path, tokens: int, *, in_turns: bool) -> dict[str, float]:
    import qasync
    from PySide6.QtWidgets import QApplication

    application = QApplication([])
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_in_window(create_engine(), model, tokens, in_turns=in_turns))


async def _in_window(
    engine: EnginePort, model: Path, tokens: int, *, in_turns: bool
) -> dict[str, float]:
    from studio.views.main_window import MainWindow

    home = Path(tempfile.mkdtemp())
    chosen = settings(home, model)
    async with open_services(chosen, paths_below(home), engine=engine) as services:
        window = MainWindow(services)
        window.resize(*WINDOW_PX)
        window.show()
        gc.collect()
        gc.freeze()  # as the program does
        assert await services.models.load(str(model))
        chats = []
        for number in range(len(PROMPTS)):
            chats.append(await services.chats.new_chat())
            chats[-1].settings = chat_settings(number, tokens)
        await window.panes.show_columns(chats)
        assert len(window.panes.panes) == len(PROMPTS)
        clock = Clock()
        engine.subscribe(clock.hear)
        for chat, prompt in zip(chats, PROMPTS, strict=True):
            assert await services.chats.send(chat, prompt)
        while clock.began is None:  # noqa: ASYNC110 - the engine's thread sets it
            await asyncio.sleep(TICK_S)
        found = await (_take_turns(window, clock) if in_turns else _let_stream(clock))
        window.quit()
        window.deleteLater()
    return found


async def _let_stream(clock: Clock) -> dict[str, float]:
    late_ms = sorted(await _ticks_until(clock, time.perf_counter() + 600))
    total = Total()
    total.add(clock.began, clock.ended)
    return {
        "speed": total.speed,
        "share": total.share,
        "p99": late_ms[int(len(late_ms) * 0.99)],
        "worst": late_ms[-1],
    }


async def _take_turns(window: MainWindow, clock: Clock) -> dict[str, float]:
    """The window seen, and resting as if it were minimised: after each change it may catch up first.

    Twice each, since steps take longer as the replies grow: seen, unseen, unseen, seen.
    """
    seen, unseen = Total(), Total()
    for is_seen in itertools.cycle((True, False, False, True)):
        if clock.is_over.is_set():
            break
        for rests in (window.context.frames, window.context.figures, window.context.watch):
            rests.set_paused(is_paused=not is_seen)
        await _ticks_until(clock, time.perf_counter() + SETTLE_S)
        before = clock.read()
        await _ticks_until(clock, time.perf_counter() + TURN_S)
        (seen if is_seen else unseen).add(before, clock.ended or clock.read())
    return {"ratio": seen.speed / unseen.speed, "seen": seen.share, "unseen": unseen.share}


async def _ticks_until(clock: Clock, end_s: float) -> list[float]:
    """How many milliseconds each tick came late."""
    late_ms = []
    while (asked_s := time.perf_counter()) < end_s and not clock.is_over.is_set():
        await asyncio.sleep(TICK_S)
        late_ms.append(1e3 * (time.perf_counter() - asked_s - TICK_S))
    return late_ms


# --- all of it


def child(given: argparse.Namespace, role: str) -> dict[str, float]:
    command = [sys.executable, __file__, str(given.model), "--tokens", str(given.tokens)]
    done = subprocess.run([*command, "--role", role], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def play(given: argparse.Namespace) -> dict[str, float]:
    if given.role == "none":
        return without_window(given.model, given.tokens)
    return with_window(given.model, given.tokens, in_turns=given.role == "turns")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1500, help="of each reply")
    parser.add_argument("--role", choices=ROLES, help="of one process; prints JSON")
    given = parser.parse_args()
    if given.role is not None:
        print(json.dumps(play(given)))
        return
    ratios, turns, shares = [], [], []
    for number in range(given.rounds):
        order = ROLES if number % 2 else ROLES[::-1]
        found = {role: child(given, role) for role in order}
        alone, window, turn = (found[role] for role in ROLES)
        ratios.append(window["speed"] / alone["speed"])
        turns.append(turn["ratio"])
        shares.append(window["share"])
        print(
            f"{alone['speed']:6.1f} tokens/s alone, {window['speed']:6.1f} with the window: "
            f"{ratios[-1]:.1%}; it takes {shares[-1]:.1%} of a core, ticks late p99 "
            f"{window['p99']:.0f} worst {window['worst']:.0f} ms; in turns {turns[-1]:.1%} of the "
            f"speed, {turn['seen']:.1%} of a core seen and {turn['unseen']:.1%} unseen",
            flush=True,
        )
    print(
        f"medians of {given.rounds}: {statistics.median(ratios):.1%} of the speed, in turns "
        f"{statistics.median(turns):.1%}; {statistics.median(shares):.1%} of a core"
    )


if __name__ == "__main__":
    main()
