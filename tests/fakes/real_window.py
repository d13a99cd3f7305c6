"""The real window on the real engine and all real services, its engine held by a gate while a test acts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.factory import create_engine
from engine.runs import Run
from fakes.at_once import begin_at_once, shut
from fakes.chat_rig import until
from fakes.gate import Gate
from fakes.shots import shoot, window_size
from studio.app import open_services
from studio.models.chat import Conversation, Message, reply_request_id
from studio.models.chat_settings import ChatSettings
from studio.paths import Paths
from studio.services.settings_service import SettingsService
from studio.views.chat.chat_pane import ChatPane
from studio.views.main_window import MainWindow
from studio.views.ports import WindowServices


@dataclass
class RealWindow:
    services: WindowServices
    window: MainWindow
    gate: Gate

    @property
    def pane(self) -> ChatPane:
        return self.window.panes.active

    def type(self, text: str) -> None:
        """Into the composer of the active pane, key by key."""
        QTest.keyClicks(self.pane.composer.focusProxy(), text)

    def press_return(self) -> None:
        QTest.keyClick(self.pane.composer.focusProxy(), Qt.Key.Key_Return)

    async def new_chat(self, settings: ChatSettings | None = None) -> Conversation:
        """A new chat in the active pane; the one that is there where nothing was said in it."""
        chat = self.pane.chat
        if chat is None or chat.messages:
            chat = await self.services.chats.new_chat()
        if settings is not None:
            self.services.chats.presets.set_settings(chat, settings)
        await self.window.panes.show_chat(chat)
        return chat

    async def send(self, text: str) -> Message:
        """Type a prompt into the active pane and press Return; its reply once there is one."""
        chat = self.pane.chat
        assert chat is not None
        self.type(text)
        self.press_return()
        await until(lambda: chat.running_message is not None)
        assert chat.running_message is not None
        return chat.running_message

    async def send_at_once(self, settings: ChatSettings, prompts: Sequence[str]) -> list[Message]:
        """Type each into a chat of its own; with the gate's next `open` all begin in the same step."""
        await shut(self.gate)
        replies = []
        for prompt in prompts:
            await self.new_chat(settings)
            replies.append(await self.send(prompt))
        await begin_at_once(self.services, self.gate, replies)
        return replies

    async def run_until(self, num_requests: int, num_tokens: int) -> None:
        """Let the engine go on until so many requests have written so many tokens more, and stand then."""
        self.gate.shut_at(num_requests, num_tokens)
        self.gate.open()
        await until(lambda: self.gate.is_shut)
        self.window.context.watch.look()

    def chat_of(self, reply: Message) -> Conversation:
        return next(chat for chat in self.services.chats.chats if reply in chat.messages)

    def run(self, reply: Message) -> Run | None:
        id_ = reply_request_id(reply)
        return next((r for r in self.services.runs.snapshot().runs if r.request_id == id_), None)

    async def shoot(self, name: str) -> None:
        """A picture, once what has happened is on screen."""
        await self.settle()
        shoot(self.window, name)

    async def settle(self) -> None:
        """Until all that has happened is drawn."""
        context = self.window.context
        context.watch.look()
        for ticker in (context.frames, context.figures) * 2:
            drawn = asyncio.Event()
            ticker.mark(drawn.set)
            await drawn.wait()


def paths_below(home: Path) -> Paths:
    return Paths(data=home / "data", cache=home / "cache", config=home, logs=home / "logs")


@asynccontextmanager
async def open_real(home: Path, **flags: Any) -> AsyncIterator[RealWindow]:
    """A shown window over what lies in `home`; `flags` are settings with a double underscore for the dot."""
    named = {name.replace("__", "."): value for name, value in flags.items()}
    settings = SettingsService(home / "settings.json", environment={}, flags=named)
    engine = create_engine()
    async with open_services(settings, paths_below(home), engine=engine) as services:
        window = MainWindow(services)
        window.resize(window_size())
        window.show()
        gate = Gate(engine)
        try:
            await until(lambda: window.panes.active.chat is not None)
            yield RealWindow(services, window, gate)
        finally:
            gate.close()
            window.quit()
            window.deleteLater()
            await asyncio.sleep(0)
