"""S13 in the window: two chats of 500 messages stream side by side while one of them is read and typed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from fakes.fake_window import Stage, open_stage, until
from fakes.shots import shoot
from studio.models.chat import Conversation, Message, Role
from studio.services.history_store import HistoryStore
from studio.views.chat.chat_pane import ChatPane

Play = Callable[[Coroutine[Any, Any, None]], None]
NUM_MESSAGES = 500
WORDS = "Some words of a message that is long enough to be read. " * 10


async def write_long_chats(path: Path) -> None:
    """Two chats of 500 messages and some 60,000 tokens each."""
    store = HistoryStore(path)
    await store.open()
    for title in ("Lisbon", "Garden"):
        chat = Conversation(0, title, 1.0, 1.0)
        chat.chat_id = await store.add_chat(chat)
        roles = (Role.USER, Role.ASSISTANT) * (NUM_MESSAGES // 2)
        messages = [
            Message(0, chat.chat_id, role, f"**{number}.** {WORDS}", 1.0)
            for number, role in enumerate(roles)
        ]
        await store.add_messages(chat, messages)
    await store.close()


async def say_on(stage: Stage, request_ids: list[str], *, paragraphs: int) -> None:
    for number in range(paragraphs):
        for request_id in request_ids:
            for word in f"Paragraph {number} goes on and on. ".split(" "):
                stage.engine.say(request_id, f"{word} ")
            stage.engine.say(request_id, "\n\n")
        await drawn(stage)


async def drawn(stage: Stage) -> None:
    for ticker in (stage.window.context.frames, stage.window.context.figures):
        done = asyncio.Event()
        ticker.mark(done.set)
        await done.wait()


def is_at_end(pane: ChatPane) -> bool:
    bar = pane.transcript.verticalScrollBar()
    return pane.transcript.sticks and bar.value() == bar.maximum()


def test_s13_long_chats_stream_in_two_panes_and_yield_to_their_reader(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        await write_long_chats(tmp_path / "history.sqlite")
        async with open_stage(tmp_path) as stage:
            panes = stage.window.panes
            chats = {chat.title: chat for chat in stage.chats.chats}
            await panes.show_chat(chats["Lisbon"])
            await panes.split(chats["Garden"])
            read, left = panes.panes
            assert len(read.chat.messages) == NUM_MESSAGES
            request_ids = [await stage.ask(chat, "And then?") for chat in chats.values()]
            for request_id in request_ids:
                stage.engine.start(request_id)
            await say_on(stage, request_ids, paragraphs=5)
            await until(lambda: is_at_end(read) and is_at_end(left))
            bar = read.transcript.verticalScrollBar()
            bar.setValue(bar.maximum() // 2)
            await drawn(stage)
            place = read.transcript.place
            field = read.composer.focusProxy()
            for word in ("typed ", "while ", "both ", "write"):
                QTest.keyClicks(field, word)
                await say_on(stage, request_ids, paragraphs=2)
            assert read.composer.text() == "typed while both write"
            assert read.transcript.place == place is not None
            assert read.transcript.to_end_button.isVisible()
            await until(lambda: is_at_end(left))
            shoot(stage.window, "s13-reading-while-both-write")
            QTest.mouseClick(read.transcript.to_end_button, Qt.MouseButton.LeftButton)
            await until(lambda: is_at_end(read))
            assert not read.transcript.to_end_button.isVisible()
            for request_id in request_ids:
                stage.engine.finish(request_id)
            await until(lambda: not any(chat.running_message for chat in chats.values()))
            await drawn(stage)
            shoot(stage.window, "s13-at-the-end")

    play(story())
