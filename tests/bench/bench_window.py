"""What the window takes from the engine: four panes stream in it, against the same four requests without a window.

Run: python tests/bench/bench_window.py MODEL [--rounds N] [--tokens N]. Two processes in turn, each with the engine
alone but for the window; each round gives a ratio. Speeds count from when all four write until one has ended. The
window's share is what its thread takes of one core. Not collected by pytest; QT_QPA_PLATFORM is "offscreen" if not set.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.api import EngineEvent, EnginePort, Failed, Finished, SamplingParams, TokenDelta
from engine.factory import create_engine
from fakes.at_once import NEVER_ENDS
from studio.models.chat import Conversation, Message, Role
from studio.models.chat_settings import ChatSettings
from studio.services.chat_prompt import request_for

PROMPTS = (
    "Tell me a long story about a lighthouse, with headings and lists.",
    "Explain how a compiler works, with examples of code.",
    "Describe twelve cities, each with its history, in a numbered list.",
    "Write a long letter to a friend about a journey by train.",
)
WINDOW_PX, TICK_S, WARM_TOKENS, POOL_TOKENS = (1920, 1080), 0.02, 16, 8192


@dataclass(slots=True)
class Clock:
    """Hears, on the engine's thread, when each request wrote how much; takes the CPU of the thread it was made on."""

    tokens: int
    written: dict[str, int] = field(default_factory=dict)
    began: tuple[float, float] | None = None
    """Wall and CPU seconds when all had written the first few tokens."""
    ended: tuple[float, float] | None = None
    counted: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)
    _cpu_clock: int = field(
        default_factory=lambda: time.pthread_getcpuclockid(threading.get_ident())
    )

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, TokenDelta):
                name, count = event.request_id, len(event.token_ids)
                self.written[name] = self.written.get(name, 0) + count
                self.counted += count if self.began is not None and self.ended is None else 0
            elif isinstance(event, Finished | Failed) and self.ended is None:
                self.ended = self._now()
                self.is_over.set()
        is_warm = len(self.written) == len(PROMPTS) and min(self.written.values()) >= WARM_TOKENS
        if self.began is None and is_warm:
            self.began = self._now()

    def result(self) -> dict[str, float]:
        assert self.began is not None, f"wrote {self.written}"
        assert self.ended is not None, f"wrote {self.written}"
        wall_s, cpu_s = (
            after - before for before, after in zip(self.began, self.ended, strict=True)
        )
        return {"tokens_s": self.counted / wall_s, "share": cpu_s / wall_s}

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), time.clock_gettime(self._cpu_clock)


def settings(number: int, tokens: int) -> ChatSettings:
    sampling = SamplingParams(temperature=0.8, seed=number, logit_bias=NEVER_ENDS)
    return ChatSettings(sampling=sampling, max_tokens=tokens)


def flags(model: Path) -> dict[str, str | int]:
    return {"engine.model": str(model), "engine.ctx_size": POOL_TOKENS, "engine.parallel": 4}


# --- without a window


def without_window(model: Path, tokens: int) -> dict[str, float]:
    from engine.api import EngineState, LoadModel, ModelChanged
    from studio.services.settings_service import SettingsService

    engine, is_ready = create_engine(), threading.Event()

    def hear(events: tuple[EngineEvent, ...]) -> None:
        if any(isinstance(e, ModelChanged) and e.state is EngineState.READY for e in events):
            is_ready.set()

    home = Path(tempfile.mkdtemp())
    options = SettingsService(home / "s.json", environment={}, flags=flags(model)).settings
    engine.subscribe(hear)
    engine.control(LoadModel(path=model, name=model.stem, options=options.load_options()))
    assert is_ready.wait(120)
    clock = Clock(tokens)
    engine.subscribe(clock.hear)
    for number, prompt in enumerate(PROMPTS):
        chat = Conversation(number + 1, "", 0.0, 0.0, is_loaded=True)
        chat.settings = settings(number, tokens)
        chat.append(Message(1, chat.chat_id, Role.USER, prompt, 0.0))
        chat.append(Message(2, chat.chat_id, Role.ASSISTANT, "", 0.0))
        engine.submit(request_for(chat, chat.messages[-1]))
    assert clock.is_over.wait(600)
    engine.shutdown()
    return clock.result()


# --- with it


def with_window(model: Path, tokens: int) -> dict[str, float]:
    import qasync
    from PySide6.QtWidgets import QApplication

    application = QApplication([])
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_in_window(create_engine(), model, tokens))


async def _in_window(engine: EnginePort, model: Path, tokens: int) -> dict[str, float]:
    from fakes.real_window import paths_below
    from studio.app import open_services
    from studio.services.settings_service import SettingsService
    from studio.views.main_window import MainWindow

    home = Path(tempfile.mkdtemp())
    chosen = SettingsService(home / "settings.json", environment={}, flags=flags(model))
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
            chats[-1].settings = settings(number, tokens)
        await window.panes.show_columns(chats)
        assert len(window.panes.panes) == len(PROMPTS)
        clock = Clock(tokens)
        engine.subscribe(clock.hear)
        for chat, prompt in zip(chats, PROMPTS, strict=True):
            assert await services.chats.send(chat, prompt)
        late_s = []
        while not clock.is_over.is_set():
            asked_s = time.perf_counter()
            await asyncio.sleep(TICK_S)
            if clock.began is not None:
                late_s.append(time.perf_counter() - asked_s - TICK_S)
        frames = window.context.frames.num_flushes
        window.quit()
        window.deleteLater()
    late_s.sort()
    late = {"p50": 0.5, "p99": 0.99, "worst": 1.0}
    return (
        clock.result()
        | {"frames": frames}
        | {
            name: 1e3 * late_s[min(int(len(late_s) * part), len(late_s) - 1)]
            for name, part in late.items()
        }
    )


# --- both


def child(given: argparse.Namespace, role: str) -> dict[str, float]:
    command = [sys.executable, __file__, str(given.model), "--tokens", str(given.tokens)]
    done = subprocess.run([*command, "--role", role], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=400, help="of each reply")
    parser.add_argument("--role", choices=("window", "none"), help="of one process; prints JSON")
    given = parser.parse_args()
    if given.role is not None:
        play = with_window if given.role == "window" else without_window
        print(json.dumps(play(given.model, given.tokens)))
        return
    ratios, shares = [], []
    for number in range(given.rounds):
        order = ("window", "none") if number % 2 else ("none", "window")
        found = {role: child(given, role) for role in order}
        with_it, alone = found["window"], found["none"]
        ratios.append(with_it["tokens_s"] / alone["tokens_s"])
        shares.append(with_it["share"])
        print(
            f"{alone['tokens_s']:6.1f} tokens/s alone, {with_it['tokens_s']:6.1f} with the window: "
            f"{ratios[-1]:.1%}; its thread {shares[-1]:.1%} of a core; ticks late p50 "
            f"{with_it['p50']:.1f} p99 {with_it['p99']:.1f} worst {with_it['worst']:.1f} ms",
            flush=True,
        )
    print(
        f"median of {given.rounds}: {statistics.median(ratios):.1%} of the speed, "
        f"{statistics.median(shares):.1%} of a core"
    )


if __name__ == "__main__":
    main()
