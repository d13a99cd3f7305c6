"""The real window on the real engine and a tiny model, with a pool that is too small: steering, fairness, giving up.

Scenarios S6, S7 (short) and S8. The engine stands still while a test acts, so that nothing depends on who is faster;
screenshots go where TEST_SCREENSHOTS says.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.api import EngineEvent, Parked, Restored, TokenDelta
from engine.runs import ParkCause, Run, RunState, WaitKind
from fakes.at_once import ask, shut, start_at_once
from fakes.chat_rig import until
from fakes.gate import Gate
from fakes.real_window import RealWindow, open_real
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import Message, MessageStatus, reply_request_id
from studio.views.actions import CommandId
from studio.views.main_window import MainWindow
from studio.views.monitor.run_row import RunRow
from studio.views.ports import WindowServices
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
POOL_TOKENS = 512
NAMES = ("Lisbon", "Children", "Recipes", "Mail help", "Garden")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model"))


@dataclass
class Stage:
    real: RealWindow
    events: list[EngineEvent] = field(default_factory=list)

    @property
    def services(self) -> WindowServices:
        return self.real.services

    @property
    def window(self) -> MainWindow:
        return self.real.window

    @property
    def gate(self) -> Gate:
        return self.real.gate

    @property
    def runs(self) -> tuple[Run, ...]:
        return self.services.runs.snapshot().runs

    def row(self, reply: Message) -> RunRow:
        """Its row in the panel, as it is now."""
        self.window.context.watch.look()
        return self.window.pool_panel.rows[reply_request_id(reply)]

    def of(self, reply: Message, *kinds: type) -> list[EngineEvent]:
        id_ = reply_request_id(reply)
        return [e for e in self.events if isinstance(e, kinds) and e.request_id == id_]

    async def start(self, *names: str, tokens: int) -> list[Message]:
        """All begin at one moment; the engine stands when four have written so much that a fifth was parked."""
        replies = await start_at_once(self.services, self.gate, names, tokens=tokens)
        await self.real.run_until(4, 100)
        return replies


def play_on(
    play: Play, home: Path, model: Path, story: Callable[[Stage], Coroutine[Any, Any, None]]
) -> None:
    async def run() -> None:
        flags = {"engine__ctx_size": POOL_TOKENS, "engine__parallel": 5, "engine__threads": 1}
        async with open_real(home, **flags) as real:
            assert await real.services.models.load(str(model))
            real.window.commands[CommandId.POOL].trigger()
            stage = Stage(real)
            stop = real.gate.engine.subscribe(stage.events.extend)
            try:
                await story(stage)
            finally:
                stop()

    play(run())


def test_s6_pin_let_go_first_and_park_are_obeyed(play: Play, tmp_path: Path, model: Path) -> None:
    async def story(stage: Stage) -> None:
        replies = await stage.start(*NAMES, tokens=300)
        runs = {id(one): stage.real.run(one) for one in replies}
        inside = [one for one in replies if runs[id(one)].state is RunState.WRITING]
        parked = [one for one in replies if runs[id(one)].state is RunState.PARKED]
        assert len(parked) >= 1
        pinned, by_hand, called = inside[0], inside[1], parked[-1]
        await stage.real.shoot("s6-before")
        stage.row(pinned).pin_button.click()
        stage.row(called).first_button.click()
        stage.row(by_hand).park_button.click()
        marked = len(stage.events)
        stage.gate.shut_at(1, 20)
        stage.gate.open()
        await until(lambda: stage.gate.is_shut)
        back = [e for e in stage.events[marked:] if isinstance(e, Restored)]
        assert back[0].request_id == reply_request_id(called), "it is the next to come back"
        run = stage.real.run(by_hand)
        assert run is not None
        assert run.wait is not None
        assert run.wait.kind is WaitKind.HELD_BY_USER
        assert tr("Waits until you bring it back") in stage.row(by_hand).accessibleName()
        await stage.real.shoot("s6-after")
        stage.gate.open()
        others = [one for one in replies if one is not by_hand]
        await until(lambda: not any(one.status.is_alive for one in others))
        assert by_hand.status is MessageStatus.PARKED, "it does not come back by itself"
        taken = [e for e in stage.of(pinned, Parked) if e.reason.cause is not ParkCause.BY_USER]
        assert all(e in stage.events[:marked] for e in taken), "never while others could be"
        button = stage.row(by_hand).first_button
        assert button.toolTip() == tr("Bring it back")
        button.click()
        await until(lambda: by_hand.status is MessageStatus.LENGTH)

    play_on(play, tmp_path, model, story)


def test_s7_everybody_gets_on_while_short_ones_keep_coming(
    play: Play, tmp_path: Path, model: Path
) -> None:
    async def story(stage: Stage) -> None:
        names = (*NAMES, "Sixth")
        long = await start_at_once(stage.services, stage.gate, names, tokens=300)
        stage.gate.open()
        short = []
        for number in range(6):
            short.append(await ask(stage.services, f"Short {number}", tokens=12))
            await until(lambda: not short[-1].status.is_alive)
        await until(lambda: not any(one.status.is_alive for one in long))
        assert {one.status for one in (*long, *short)} == {MessageStatus.LENGTH}
        for reply in long:
            moves = stage.of(reply, Parked, Restored, TokenDelta)
            kinds = [type(one) for one in moves]
            pairs = list(pairwise(kinds))
            assert (Restored, Parked) not in pairs, "whoever comes back writes before he goes again"
        await stage.real.shoot("s7-after")
        assert stage.services.history.longest_wait() is not None

    play_on(play, tmp_path, model, story)


def test_s8_what_is_given_up_leaves_its_room_and_no_stray_row(
    play: Play, tmp_path: Path, model: Path
) -> None:
    async def story(stage: Stage) -> None:
        replies = await stage.start(*NAMES, tokens=300)
        states = {id(one): stage.real.run(one).state for one in replies}
        parked = next(one for one in replies if states[id(one)] is RunState.PARKED)
        running = next(one for one in replies if states[id(one)] is RunState.WRITING)
        await stage.window.panes.split(stage.real.chat_of(running))
        chat, text = stage.real.chat_of(running), running.text
        await stage.real.shoot("s8-before")
        stage.row(parked).stop_button.click()
        await stage.services.chats.delete(chat)
        stage.window.panes.close_pane(stage.window.panes.panes[-1])
        await shut_again(stage)
        ids = {reply_request_id(one) for one in (parked, running)}
        assert not ids & {run.request_id for run in stage.runs}
        held = {id_ for one in stage.services.runs.snapshot().holdings for id_ in one.request_ids}
        assert not ids & held, "their pages are free"
        stage.window.context.watch.look()
        assert not ids & stage.window.pool_panel.rows.keys()
        await stage.real.shoot("s8-after")
        stage.gate.open()
        others = [one for one in replies if one not in (parked, running)]
        await until(lambda: not any(one.status.is_alive for one in others))
        assert {one.status for one in others} == {MessageStatus.LENGTH}
        assert parked.status is MessageStatus.STOPPED
        await stage.services.chats.shelf.restore([chat])
        assert chat in stage.services.chats.chats
        assert chat.messages[-1].text.startswith(text)

    play_on(play, tmp_path, model, story)


async def shut_again(stage: Stage) -> None:
    """Let the engine do what it was told, and stop it before anybody gets far."""
    stage.gate.open()
    await shut(stage.gate)
