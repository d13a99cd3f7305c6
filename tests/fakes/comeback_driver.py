"""A process that runs the real window on the real engine with a folder for parked chats, and says how its chat is.

Run by the test of comebacks: `python -m fakes.comeback_driver MODEL FOLDER [PROMPT PARK_AT]`. With a prompt it asks in
a new chat and, unless PARK_AT is 0, parks it by hand once it has so many characters. Without, it only loads the model.
It never ends by itself.
"""

from __future__ import annotations

import asyncio
import json
import sys

import qasync
from PySide6.QtWidgets import QApplication

from studio.app import open_services
from studio.models.chat import Message, Role
from studio.models.chat_settings import ChatSettings
from studio.paths import find_paths
from studio.services.run_service import Steer
from studio.services.settings_service import SettingsService
from studio.views.main_window import MainWindow
from studio.views.ports import WindowServices

REPLY_TOKENS = 90


def say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def report(message: Message) -> None:
    if message.role is Role.ASSISTANT:
        say(
            text=message.text,
            status=message.status.value,
            note=message.note,
            cause=message.park.reason.cause.value if message.park is not None else "",
            parks=message.stats.parked_s > 0,
        )


async def ask(services: WindowServices, window: MainWindow, prompt: str, park_at: int) -> None:
    chat = await services.chats.new_chat()
    chat.settings = ChatSettings(max_tokens=REPLY_TOKENS)
    await window.panes.show_chat(chat)

    def park(message: Message) -> None:
        if park_at and len(message.text) >= park_at:
            disconnect()
            services.runs.steer_chat(chat, Steer.PARK)

    disconnect = services.chats.message_changed.connect(park)
    assert await services.chats.send(chat, prompt)


async def main(model: str, folder: str, *rest: str) -> None:
    paths = find_paths()
    flags = {
        "engine.model": model,
        "engine.ctx_size": 2048,
        "engine.seed": 1,
        "park.folder": folder,
    }
    settings = SettingsService(paths.settings_file, environment={}, flags=flags)
    async with open_services(settings, paths) as services:
        window = MainWindow(services)
        window.show()
        services.chats.message_changed.connect(report)
        if not rest and services.chats.chats:
            await window.panes.show_chat(services.chats.chats[0])
        assert await services.models.load(model)
        if rest:
            await ask(services, window, rest[0], int(rest[1]))
        await window.wait_closed()


if __name__ == "__main__":
    application = QApplication(sys.argv[:1])
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(main(*sys.argv[1:]))
