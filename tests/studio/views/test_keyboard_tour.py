"""S18: no mouse. First launch, a chat, its reply read and its code copied, pinned, the pool, the settings, the end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import EngineState
from engine.runs import RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import shoot
from fakes.spoken import nameless
from studio.views.actions import plain
from studio.views.chat.code_block import CodeBlock
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
CODE = "print('hello')"
REPLY = f"Like this:\n\n```py\n{CODE}\n```\n\nThat is all."


def focus() -> QWidget:
    """Where the keyboard is: there is always such a place, it is on screen, and nothing there is without a name."""
    now = QApplication.focusWidget()
    assert now is not None
    assert now.isVisible()
    assert nameless(now.window()) == []
    return now


def press(keys: str) -> None:
    combination = QKeySequence(keys)[0]
    QTest.keyClick(focus(), combination.key(), combination.keyboardModifiers())


def type_words(words: str) -> None:
    QTest.keyClicks(focus(), words)


def tab_to(name: str) -> QWidget:
    """Press Tab until the control of that name has the focus."""
    for _ in range(80):
        if name in (focus().accessibleName(), focus().property("text")):
            return focus()
        press("Tab")
    raise AssertionError(f"Tab does not lead to {name!r}")


async def first_launch(stage: Stage) -> None:
    await until(lambda: ("look_around", "") in stage.models.asked)
    tab_to(tr("Get the starter model ({size})").format(size="98 MB"))
    await stage.settle()
    shoot(stage.window, "s18-first-launch")
    press("Return")
    await until(lambda: any(asked[0] == "fetch" for asked in stage.models.asked))
    stage.models.say(EngineState.READY)


async def ask_and_read(stage: Stage) -> str:
    """The reply is parked once and comes back; the id of its request."""
    tab_to(stage.window.panes.active.composer.focusProxy().accessibleName())
    type_words("How do I say hello?")
    press("Return")
    await until(lambda: stage.engine.requests)
    (request_id,) = stage.engine.requests
    stage.engine.start(request_id)
    stage.engine.say(request_id, REPLY[:20])
    stage.engine.park(request_id)
    stage.engine.publish(make_run(request_id, RunState.PARKED, wait=make_wait()))
    chat = stage.window.panes.active.chat
    await until(lambda: chat.messages[-1].status.value == "parked")
    stage.window.context.watch.look()
    tab_to(tr("Let it go first"))
    await stage.settle()
    shoot(stage.window, "s18-parked")
    stage.engine.restore(request_id)
    for start in range(20, len(REPLY), 5):
        stage.engine.say(request_id, REPLY[start : start + 5])
    stage.engine.publish()
    stage.engine.finish(request_id)
    await until(lambda: chat.running_message is None)
    return request_id


async def copy_the_code(stage: Stage) -> None:
    transcript = stage.window.panes.active.transcript
    await until(
        lambda: any(one.text().strip() == CODE for one in transcript.findChildren(CodeBlock))
    )
    tab_to(tr("Copy code"))
    await stage.settle()
    shoot(stage.window, "s18-copy-code")
    QApplication.clipboard().clear()
    press("Return")
    assert QApplication.clipboard().text().strip() == CODE


async def pin_by_palette(stage: Stage) -> None:
    press("Ctrl+Shift+P")
    await until(stage.window.app.palette.field.hasFocus)
    type_words(plain(tr("Pin chat to the t&op")).lower())
    await stage.settle()
    shoot(stage.window, "s18-palette")
    press("Return")
    await until(lambda: stage.window.panes.active.chat.is_pinned)


async def look_at_pool_and_settings(stage: Stage) -> None:
    press("Ctrl+Shift+U")
    assert stage.window.pool_panel.isVisible()
    await until(lambda: stage.window.pool_panel.width() > 100)
    tab_to(tr("Close the pool panel"))
    await stage.settle()
    shoot(stage.window, "s18-pool")
    press("Return")
    assert not stage.window.pool_panel.isVisible()
    tab_to(stage.window.panes.active.composer.focusProxy().accessibleName())
    press("Ctrl+,")
    dialog = stage.window.settings_window.dialog
    await until(lambda: QApplication.focusWidget().window() is dialog)
    for _ in range(5):
        press("Tab")
    shoot(dialog, "s18-settings")
    press("Esc")
    assert not dialog.isVisible()
    stage.window.activateWindow()  # as a desktop does
    await until(lambda: QApplication.focusWidget() is not None)


def test_s18_a_whole_session_without_a_mouse(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        QAccessible, "updateAccessibility", lambda event: told.append(event.message())
    )

    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.window.activateWindow()
            await until(lambda: QApplication.focusWidget() is not None)
            await first_launch(stage)
            await ask_and_read(stage)
            await copy_the_code(stage)
            await pin_by_palette(stage)
            await look_at_pool_and_settings(stage)
            press("Ctrl+Q")
            await stage.window.wait_closed()

    play(story())
    title = "How do I say hello?"
    assert [one.startswith(title) for one in told] == [True] * 3, (
        "parked, back, finished: once each"
    )
    ends = (tr("{title} goes on"), tr("{title} has finished"))
    assert told[1:] == [one.format(title=title) for one in ends]
