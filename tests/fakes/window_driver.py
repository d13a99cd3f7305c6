"""A process that runs the real window on the real engine, opens chats, and says how far each reply is.

Run by the crash test, which kills it: `python -m fakes.window_driver MODEL PROMPT...`. It never ends by itself.
"""

from __future__ import annotations

import asyncio
import json
import sys

import qasync
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from studio.app import open_services
from studio.models.chat import Message, Role
from studio.paths import find_paths
from studio.services.chat_service import ChatService
from studio.services.settings_service import SettingsService
from studio.views.main_window import MainWindow


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def report(message: Message) -> None:
    if message.role is Role.ASSISTANT:
        say(chat=message.chat_id, text=message.text, status=message.status.value)


async def first_message(chats: ChatService) -> None:
    """Wait until a prompt is stored and shown, before another chat takes the pane."""
    shown = asyncio.Event()
    disconnect = chats.message_added.connect(lambda _message: shown.set())
    await shown.wait()
    disconnect()


async def main(model: str, prompts: list[str]) -> None:
    paths = find_paths()
    flags = {
        "engine.model": model,
        "engine.ctx_size": 4096,
        "engine.seed": 1,
        "engine.cpu_variant": "torch",  # slow enough for replies to last until the kill
        "engine.threads": 1,
    }
    settings = SettingsService(paths.settings_file, environment={}, flags=flags)
    async with open_services(settings, paths) as services:
        window = MainWindow(services)
        window.show()
        assert await services.models.load(model)
        services.chats.message_changed.connect(report)
        for prompt in prompts:
            chat = await services.chats.new_chat()
            await window.panes.show_chat(chat)
            field = window.panes.active.composer.focusProxy()
            QTest.keyClicks(field, prompt)
            QTest.keyClick(field, Qt.Key.Key_Return)
            await first_message(services.chats)
        await window.wait_closed()


if __name__ == "__main__":
    application = QApplication(sys.argv[:1])
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(main(sys.argv[1], sys.argv[2:]))
