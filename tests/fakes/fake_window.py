"""A whole window on a scripted engine: real chats, history, notices and settings; scripted model service and server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.api import EngineState, LoadOptions, ModelInfo
from engine.client import EngineClient
from engine.runs import Run
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.fake_tools import FakeTools
from fakes.patience import until
from fakes.shots import lay_out, window_size
from studio.models.chat import Conversation
from studio.models.engine_state import FetchProgress, ModelStatus
from studio.models.errors import ServerStartError
from studio.models.model_library import FoundModel, ModelEntry, ModelFacts, ModelSource
from studio.models.request_log import RequestLog
from studio.models.signal import Signal
from studio.paths import Paths
from studio.services.chat_service import ChatService, ChatTooling
from studio.services.download_service import DownloadService
from studio.services.history_store import HistoryStore
from studio.services.hub_search import HubSearch
from studio.services.key_store import KeyStore
from studio.services.load_settings_store import LoadSettingsStore
from studio.services.model_catalog import read_catalog
from studio.services.model_library_service import ModelLibraryService
from studio.services.notice_service import NoticeService
from studio.services.park_history import ParkHistory
from studio.services.reload_service import ReloadService
from studio.services.restart_service import RestartService
from studio.services.run_service import RunService
from studio.services.server_service import ServerService
from studio.services.settings_service import SettingsService
from studio.services.support_service import SupportService
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

    def __init__(self, state: EngineState, load_settings: LoadSettingsStore) -> None:
        self.status = ModelStatus(
            state=state, model=TINY_MODEL if state is EngineState.READY else None
        )
        self.entries: tuple[ModelEntry, ...] = ()
        self.facts: dict[Path, ModelFacts] = {}
        self.outside: tuple[ModelEntry, ...] = ()
        self.found: tuple[FoundModel, ...] = ()
        self.load_settings = load_settings
        self.fetching: FetchProgress | None = None
        self.catalog = read_catalog()
        self.changed: Signal[[]] = Signal()
        self.library_changed: Signal[[]] = Signal()
        self.fetch_changed: Signal[[]] = Signal()
        self.asked: list[tuple[str, str]] = []
        self.is_resting = False
        self.num_expected = 0

    @property
    def state(self) -> EngineState:
        return self.status.state

    @property
    def model(self) -> object:
        return self.status.model

    @property
    def progress(self) -> float:
        return self.status.progress

    @property
    def is_coming(self) -> bool:
        is_loading = self.state is EngineState.LOADING or self.fetching is not None
        return is_loading or self.num_expected > 0

    @contextmanager
    def expecting(self) -> Iterator[None]:
        self.num_expected += 1
        self.changed.emit()
        yield
        self.num_expected -= 1
        self.changed.emit()

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

    async def add_folder(self, folder: Path) -> int:
        self.asked.append(("add_folder", str(folder)))
        return 1

    async def look_around(self) -> None:
        self.asked.append(("look_around", ""))

    async def add_found(self, found: FoundModel) -> ModelEntry:
        self.asked.append(("add_found", found.name))
        return ENTRY

    async def rename(self, name: str, new_name: str) -> bool:
        self.asked.append(("rename", f"{name} {new_name}"))
        return True

    async def relocate(self, name: str, path: Path) -> bool:
        self.asked.append(("relocate", f"{name} {path}"))
        return True

    async def remove(self, name: str) -> bool:
        self.asked.append(("remove", name))
        return True


def _inspect(path: Path, name: str) -> ModelInfo:
    return replace(TINY_MODEL, path=path, name=name)


class PretendServer:
    """Listens at nothing; a test may have it refuse to start."""

    url = "http://127.0.0.1:8484"
    refusal: ServerStartError | None = None

    def __init__(self) -> None:
        self.finished = threading.Event()

    def start(self) -> None:
        if (refusal := PretendServer.refusal) is not None:
            raise refusal

    def finish(self) -> None:
        self.finished.wait(60)

    def stop(self) -> None:
        self.finished.set()


@dataclass(slots=True)
class Stage:
    """All that a test plays with."""

    window: MainWindow
    engine: FakeEngine
    models: FakeModels
    server: ServerService
    services: WindowServices
    tools: FakeTools

    @property
    def chats(self) -> ChatService:
        return self.services.chats

    async def ask(self, chat: Conversation, text: str) -> str:
        """Send a prompt past the composer; the id of the request that the engine got."""
        known = set(self.engine.requests)
        assert await self.chats.send(chat, text)
        await until(lambda: len(self.engine.requests) > len(known))
        return next(id_ for id_ in self.engine.requests if id_ not in known)

    def publish(self, *runs: Run, **more: Any) -> None:
        """Have the engine say that these run (`FakeEngine.publish`), and look at it."""
        self.engine.publish(*runs, **more)
        self.window.context.watch.look()

    async def settle(self) -> None:
        """Draw all that has happened."""
        context = self.window.context
        context.watch.look()
        for ticker in (context.frames, context.figures) * 2:
            ticker._flush()
            await asyncio.sleep(0)
        lay_out()


def _follow(engine: FakeEngine, state: EngineState) -> None:
    """Have the engine publish what the window is told of it: a model, and room for parked chats, or nothing."""
    known = (EngineState.READY, EngineState.NO_MODEL)
    if state in known and state is not engine.snapshot().state:
        engine.publish_state(state)


@asynccontextmanager
async def open_stage(
    folder: Path, *, state: EngineState = EngineState.READY, titles: tuple[str, ...] = ()
) -> AsyncIterator[Stage]:
    """A shown window with a chat for each title, the last one on top and in the pane."""
    engine = FakeEngine(auto=False, ready=False)
    _follow(engine, state)
    client = EngineClient(engine, asyncio.get_running_loop())
    notices = NoticeService()
    settings = SettingsService(folder / "settings.json", environment={}, flags={})
    tools = FakeTools(folder / "tool_servers.json")
    tooling = ChatTooling(service=tools, settings=lambda: settings.settings.tools)
    chats = ChatService(client, HistoryStore(folder / "history.sqlite"), notices, tools=tooling)
    await chats.start()
    for title in titles:
        await chats.rename(await chats.new_chat(), title)
    models = FakeModels(state, LoadSettingsStore(folder / "load_settings.json", settings))
    models.changed.connect(lambda: _follow(engine, models.state))
    runs = RunService(client, chats)
    library = ModelLibraryService(folder / "models", (), inspect=_inspect)
    downloads = DownloadService(library, free_bytes=lambda _folder: 1 << 50)
    server = ServerService(
        PretendServer,
        notices,
        settings=settings,
        keys=KeyStore(folder / "keys.json"),
        log=RequestLog(),
    )
    services = WindowServices(
        chats=chats,
        models=models,  # type: ignore[arg-type]
        notices=notices,
        settings=settings,
        server=server,
        runs=runs,
        history=ParkHistory(client, runs),
        reloads=ReloadService(client, chats, runs, models=models, settings=settings),  # type: ignore[arg-type]
        restarts=RestartService(settings),
        downloads=downloads,
        hub=HubSearch("http://127.0.0.1:9"),
        support=SupportService(
            Paths(
                data=folder / "data",
                cache=folder / "cache",
                config=folder / "config",
                logs=folder / "logs",
            ),
            settings,
            doctor=lambda: "ok    layby\n",
        ),
    )
    window = MainWindow(services)
    window.resize(window_size())  # whatever the screen of the test run
    window.show()
    try:
        await until(lambda: window.panes.active.chat is not None)
        yield Stage(window, engine, models, server, services, tools)
    finally:
        window.close()
        window.deleteLater()
        await downloads.close()
        await server.stop()
        services.reloads.close()
        services.history.close()
        await chats.close()
        client.close()
