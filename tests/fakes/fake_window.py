"""A whole window on a scripted engine: real chats, history, notices and settings; scripted model service and server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.api import EngineState, LoadOptions
from engine.client import EngineClient
from fakes.fake_engine import TINY_MODEL, FakeEngine
from studio.models.chat import Conversation
from studio.models.engine_state import FetchProgress, ModelStatus
from studio.models.model_library import ModelEntry, ModelSource
from studio.models.signal import Signal
from studio.services.chat_service import ChatService
from studio.services.history_store import HistoryStore
from studio.services.model_catalog import read_catalog
from studio.services.notice_service import NoticeService
from studio.services.park_history import ParkHistory
from studio.services.reload_service import ReloadService
from studio.services.run_service import RunService
from studio.services.settings_service import SettingsService
from studio.views.main_window import MainWindow
from studio.views.ports import WindowServices

ENTRY = ModelEntry(
    name="tiny",
    path=TINY_MODEL.path,
    size_bytes=98_000_000,
    sha256=None,
    source=ModelSource.LINKED,
)


class FakeModels:
    """Notes what is asked; a test sets `status`, `entries` and `fetching` through `say`."""

    def __init__(self, state: EngineState = EngineState.READY) -> None:
        self.status = ModelStatus(
            state=state, model=TINY_MODEL if state is EngineState.READY else None
        )
        self.entries: tuple[ModelEntry, ...] = ()
        self.fetching: FetchProgress | None = None
        self.catalog = read_catalog()
        self.changed: Signal[[]] = Signal()
        self.library_changed: Signal[[]] = Signal()
        self.fetch_changed: Signal[[]] = Signal()
        self.asked: list[tuple[str, str]] = []

    @property
    def state(self) -> EngineState:
        return self.status.state

    @property
    def model(self) -> object:
        return self.status.model

    @property
    def progress(self) -> float:
        return self.status.progress

    def say(
        self, state: EngineState, *, progress: float = 0.0, error: Exception | None = None
    ) -> None:
        has_model = state in (EngineState.READY, EngineState.LOADING)
        model = TINY_MODEL if has_model else None
        self.status = ModelStatus(state=state, model=model, progress=progress, error=error)
        self.changed.emit()

    def say_fetching(self, done_bytes: int | None, total_bytes: int = 93_000_000) -> None:
        self.fetching = None
        if done_bytes is not None:
            self.fetching = FetchProgress(
                name="smollm2-135m", done_bytes=done_bytes, total_bytes=total_bytes
            )
        self.fetch_changed.emit()

    async def refresh(self) -> None:
        self.asked.append(("refresh", ""))

    async def load(
        self, name: str, options: LoadOptions | None = None, *, carries_on: bool = False
    ) -> bool:
        del options
        self.asked.append(("carry on", name) if carries_on else ("load", name))
        return True

    async def unload(self) -> None:
        self.asked.append(("unload", ""))

    async def fetch(self, name: str) -> ModelEntry:
        self.asked.append(("fetch", name))
        return ENTRY

    def cancel_fetch(self) -> None:
        self.asked.append(("cancel_fetch", ""))

    async def add(self, path: Path) -> ModelEntry:
        self.asked.append(("add", str(path)))
        return ENTRY


class FakeServer:
    """A switch with nothing behind it."""

    def __init__(self) -> None:
        self.address: str | None = None
        self.changed: Signal[[]] = Signal()

    async def start(self) -> None:
        self.address = "http://127.0.0.1:8484"
        self.changed.emit()

    async def stop(self) -> None:
        self.address = None
        self.changed.emit()


@dataclass(slots=True)
class Stage:
    """All that a test plays with."""

    window: MainWindow
    engine: FakeEngine
    models: FakeModels
    server: FakeServer
    services: WindowServices

    @property
    def chats(self) -> ChatService:
        return self.services.chats

    async def ask(self, chat: Conversation, text: str) -> str:
        """Send a prompt past the composer; the id of the request that the engine got."""
        known = set(self.engine.requests)
        assert await self.chats.send(chat, text)
        await until(lambda: len(self.engine.requests) > len(known))
        return next(id_ for id_ in self.engine.requests if id_ not in known)


async def until(condition: Callable[[], object], *, timeout_s: float = 60) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - a condition is no event
            await asyncio.sleep(0.001)


@asynccontextmanager
async def open_stage(
    folder: Path, *, state: EngineState = EngineState.READY, titles: tuple[str, ...] = ()
) -> AsyncIterator[Stage]:
    """A shown window with a chat for each title, the last one on top and in the pane."""
    engine = FakeEngine(auto=False)
    client = EngineClient(engine, asyncio.get_running_loop())
    notices = NoticeService()
    chats = ChatService(client, HistoryStore(folder / "history.sqlite"), notices)
    await chats.start()
    for title in titles:
        await chats.rename(await chats.new_chat(), title)
    settings = SettingsService(folder / "settings.json", environment={}, flags={})
    models, server = FakeModels(state), FakeServer()
    runs = RunService(client, chats)
    services = WindowServices(
        chats=chats,
        models=models,  # type: ignore[arg-type]
        notices=notices,
        settings=settings,
        server=server,
        runs=runs,
        history=ParkHistory(client, runs),
        reloads=ReloadService(client, chats, runs, models=models, settings=settings),  # type: ignore[arg-type]
    )
    window = MainWindow(services)
    window.resize(1280, 800)  # whatever the screen of the test run
    window.show()
    try:
        await until(lambda: window.panes.active.chat is not None)
        yield Stage(window, engine, models, server, services)
    finally:
        window.close()
        window.deleteLater()
        services.reloads.close()
        services.history.close()
        await chats.close()
        client.close()
