"""The composition root: the only file that knows everybody.

Builds the engine, its clients, the services, the server and the window, in that order, and takes them down in the
opposite one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from engine.api import (
    EnginePort,
    LoadModel,
    LoadOptions,
    ModelInfo,
)
from engine.client import EngineClient
from engine.factory import create_engine, create_late_engine, inspect_model
from studio.bring_back import bring_back, usual_start
from studio.crash_watch import CrashWatch
from studio.model_news import ModelNews
from studio.models.errand import Errand
from studio.models.errors import StoreError
from studio.models.request_log import RequestLog
from studio.models.what_ran import WhatRan
from studio.paths import Paths, find_model_caches
from studio.server.parts import ServerParts
from studio.services.chat_service import ChatService, ChatTooling
from studio.services.comeback_service import ComebackService
from studio.services.download_service import DownloadService
from studio.services.history_store import HistoryStore
from studio.services.hub_search import HubSearch
from studio.services.idle_unloader import IdleUnloader, WakingEngine
from studio.services.key_store import KeyStore
from studio.services.load_settings_store import LoadSettingsStore
from studio.services.model_catalog import read_catalog
from studio.services.model_demand import ModelDemand
from studio.services.model_facts import ModelFactsReader
from studio.services.model_fetcher import ModelFetcher, default_pip
from studio.services.model_library_service import ModelLibraryService
from studio.services.model_service import ModelService
from studio.services.notice_service import (
    CRASHED_NOTICE,
    UNEXPECTED_NOTICE,
    NoticeService,
)
from studio.services.park_history import ParkHistory
from studio.services.park_service import ParkService
from studio.services.reload_service import ReloadService
from studio.services.restart_service import RestartService
from studio.services.run_service import RunService
from studio.services.server_service import ServerService, StartableServer
from studio.services.settings_service import SettingSource, SettingsService
from studio.services.support_service import SupportService
from studio.services.tools.own_programs import end_left_behind
from studio.services.tools.tool_service import ToolService
from studio.views.ports import WindowServices

_log = logging.getLogger(__name__)

_DESKTOP_NAME = "layby"
_TOKENS_REST_S = 0.03
"""Between two wake-ups of the window for new text: it is drawn no more often."""
_LONGEST_UNSEEN_S = 1.0
"""How long the engine's making waits for the window to be drawn."""


def run_server(settings: SettingsService, paths: Paths) -> int:
    """`layby serve`: the server alone, until a signal ends it.

    Listens first (so that a taken port is known at once, and /health answers while the model loads), then loads the
    model, then says where it listens. Raises EngineError or ServerStartError when it cannot serve.
    """
    from studio.server.thread import ServerThread

    _warn_of_park_folder(settings)
    library = _library(paths)
    path = library.resolve(settings.settings.engine.model)
    load_settings = LoadSettingsStore(paths.load_settings_file, settings)

    def options_for(model: Path) -> LoadOptions:
        return replace(load_settings.options_for(model), preempt_disk=None)

    options = options_for(path)
    engine = create_engine()
    idle = IdleUnloader(engine, lambda: settings.settings.engine.idle_unload_min)
    parts = _server_parts(settings, library, KeyStore(paths.keys_file), options_for, idle=idle)
    server = ServerThread(engine, settings.settings.server.server_settings(), parts=parts)
    try:
        server.start()
        news = ModelNews()
        _on_signals(news.stop)
        engine.subscribe(news.hear)
        started_s = time.monotonic()
        engine.control(LoadModel(path=path, name=library.name_of(path), options=options))
        if news.wait_until_ready():
            _log.info("loaded %s in %.1f s", path, time.monotonic() - started_s)
            sys.stdout.write(f"listening on {server.url}\n")
            sys.stdout.flush()
            news.wait_for_stop()
        return 0
    finally:
        server.stop()
        idle.close()
        engine.shutdown()


def _server_parts(
    settings: SettingsService,
    library: ModelLibraryService,
    keys: KeyStore,
    options_for: Callable[[Path], LoadOptions],
    *,
    idle: IdleUnloader,
) -> ServerParts:
    """What the server shares with the rest: keys, rows of requests, and how a model that is named gets loaded."""

    def make_demand() -> ModelDemand:
        return ModelDemand(
            library,
            options_for,
            is_on=lambda: settings.settings.server.loads_models,
            usual_model=lambda: settings.settings.engine.model,
            idle=idle,
        )

    return ServerParts(keys=keys, log=RequestLog(), make_demand=make_demand)


def _warn_of_park_folder(settings: SettingsService) -> None:
    """Programs' requests end with their connections: the folder is left to a window that may want it."""
    if not settings.settings.park.folder:
        return
    is_the_windows = settings.source("park.folder") is SettingSource.FILE
    _log.log(
        logging.INFO if is_the_windows else logging.WARNING,
        "nothing is kept in %s (--preempt-disk): requests to the server end with their connections, only the "
        "window's chats are kept",
        settings.settings.load_options().preempt_disk,
    )


def _on_signals(stop: Callable[[], object]) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        stop()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def run_window(
    settings: SettingsService,
    paths: Paths,
    errand: Errand | None = None,
    what_ran: WhatRan | None = None,
) -> WhatRan | None:
    """`layby`: the window, until it is closed; or the window that is open already, brought to the front.

    `what_ran` before is brought back. Returns what runs at the end if the user wants the program to start again. Raises
    StoreError, after saying so in a window, when the chats cannot be opened: StoreBusy where another Layby has them
    that does not answer.
    """
    import qasync
    from PySide6.QtWidgets import QApplication

    from studio.starting import turn_after
    from studio.views.first_start import Turn
    from studio.views.single_instance import address_for, hand_over
    from studio.views.translation import speak

    # X11 makes the window's class of the first argument; desktops find icon and launcher by these names.
    application = QApplication.instance() or QApplication([_DESKTOP_NAME])
    QApplication.setApplicationName("Layby")
    QApplication.setDesktopFileName(_DESKTOP_NAME)
    speak(application, settings.settings.appearance.language)
    errand = errand or Errand()
    if hand_over(address_for(paths.data), errand):
        return None
    while True:
        try:
            # Not qasync.run: on Python 3.11 it would make every other thread's loop a Qt loop too.
            with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
                return runner.run(_window_until_closed(settings, paths, errand, what_ran))
        except StoreError as error:
            turn = turn_after(error, paths, errand, settings.settings.appearance)
            if turn is Turn.GIVEN_UP:
                raise
        if turn is Turn.HANDED_OVER:
            return None


async def _window_until_closed(
    settings: SettingsService, paths: Paths, errand: Errand, what_ran: WhatRan | None
) -> WhatRan | None:
    """What runs at its end if it is to start again."""
    from studio.views.first_paint import FirstPaint
    from studio.views.main_window import MainWindow
    from studio.views.single_instance import InstanceServer, address_for

    engine = create_late_engine()
    async with open_services(settings, paths, engine=engine) as services:
        watch = _watch_for_crashes(paths, services.notices)
        tidying = asyncio.create_task(asyncio.to_thread(end_left_behind))
        wanted, is_seen = what_ran or usual_start(settings.settings), asyncio.Event()
        coming = asyncio.create_task(bring_back(services, engine, wanted, is_seen))
        await asyncio.sleep(0)  # from now on the model is expected
        window = MainWindow(services)
        _on_signals(window.quit)
        painted = FirstPaint(window)
        window.show()
        window.memory.recall()
        others = InstanceServer(address_for(paths.data), window.app.receive, window)
        window.app.receive(errand)
        window.chat_commands.open_windows(wanted.chat_ids)
        await painted.wait(_LONGEST_UNSEEN_S)
        is_seen.set()
        if wanted.has_server:
            await services.server.start()
        await window.wait_closed()
        others.close()
        coming.cancel()
        window.deleteLater()
        await tidying
        watch.stop()
    if services.support.wants_all_deleted:
        for path in services.support.delete_everything():
            sys.stderr.write(f"layby: {path} could not be deleted\n")
    return services.restarts.what_ran


def _watch_for_crashes(paths: Paths, notices: NoticeService) -> CrashWatch:
    """Tell of what nobody caught, once for all of it, and of a crash of the run before."""
    loop = asyncio.get_running_loop()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody is left to hear
            loop.call_soon_threadsafe(notices.show_unforeseen, UNEXPECTED_NOTICE)

    watch = CrashWatch(paths.logs, tell)
    watch.start()
    loop.set_exception_handler(watch.on_loop_error)
    if watch.last_run_crashed:
        notices.show(CRASHED_NOTICE)
    return watch


def _support(
    settings: SettingsService, paths: Paths, library: ModelLibraryService
) -> SupportService:
    return SupportService(paths, settings, doctor=lambda: _doctors_report(settings, paths, library))


def _windows_client(engine: EnginePort, idle: IdleUnloader) -> EngineClient:
    port = WakingEngine(engine, idle)
    return EngineClient(port, asyncio.get_running_loop(), rest_s=_TOKENS_REST_S)


@asynccontextmanager
async def open_services(
    settings: SettingsService, paths: Paths, *, engine: EnginePort | None = None
) -> AsyncIterator[WindowServices]:
    """Everything below the window, running. Raises StoreBusy when another Layby has the chats open."""
    engine = engine or create_engine()
    idle = IdleUnloader(engine, lambda: settings.settings.engine.idle_unload_min)
    client = _windows_client(engine, idle)
    notices = NoticeService()
    chats = _chats(client, settings, paths, notices)
    library = _library(paths)
    models = _models(client, library, settings, paths, notices=notices, idle=idle)
    downloads = DownloadService(library)
    keys = KeyStore(paths.keys_file)
    parts = _server_parts(settings, library, keys, models.load_settings.options_for, idle=idle)
    runs = RunService(client, chats, parts.log)
    history = ParkHistory(client, runs)
    reloads = ReloadService(client, chats, runs, models=models, settings=settings)
    parking = ParkService(client, settings, notices)
    comebacks = ComebackService(client, chats, notices)
    server = _server(engine, settings, parts, keys, notices=notices)
    try:
        await chats.start()
        await models.scan()
        await downloads.restore()
        yield WindowServices(
            chats=chats,
            models=models,
            notices=notices,
            settings=settings,
            server=server,
            runs=runs,
            history=history,
            reloads=reloads,
            restarts=RestartService(settings),
            downloads=downloads,
            hub=HubSearch(),
            support=_support(settings, paths, library),
        )
    finally:
        for listener in (idle, reloads, history, parking):
            listener.close()
        await downloads.close()
        await server.stop()
        await comebacks.close()
        await chats.close()
        await models.close()
        client.close()
        await asyncio.to_thread(engine.shutdown)


def _chats(
    client: EngineClient, settings: SettingsService, paths: Paths, notices: NoticeService
) -> ChatService:
    tools = ToolService(paths.tool_servers_file)
    if tools.store.problem is not None:
        notices.report(tools.store.problem)
    tooling = ChatTooling(service=tools, settings=lambda: settings.settings.tools)
    store = HistoryStore(paths.history_file)
    return ChatService(client, store, notices, clock=time.time, tools=tooling)


def _models(
    client: EngineClient,
    library: ModelLibraryService,
    settings: SettingsService,
    paths: Paths,
    *,
    notices: NoticeService,
    idle: IdleUnloader,
) -> ModelService:
    return ModelService(
        client,
        library,
        ModelFetcher(library, pip=default_pip()),
        settings=settings,
        load_settings=LoadSettingsStore(paths.load_settings_file, settings),
        facts=ModelFactsReader(inspect_model, paths.facts_file),
        caches=find_model_caches(),
        notices=notices,
        is_resting=idle.is_resting,
    )


def _server(
    engine: EnginePort,
    settings: SettingsService,
    parts: ServerParts,
    keys: KeyStore,
    *,
    notices: NoticeService,
) -> ServerService:
    def make() -> StartableServer:
        # Here and not above: to read the web framework takes as long as to build the window.
        from studio.server.thread import ServerThread

        return ServerThread(engine, settings.settings.server.server_settings(), parts=parts)

    for problem in (settings.problem, keys.problem):
        if problem is not None:
            notices.report(problem)
    return ServerService(make, notices, settings=settings, keys=keys, log=parts.log)


def _doctors_report(settings: SettingsService, paths: Paths, library: ModelLibraryService) -> str:
    # Here and not above: only a log bundle needs to look at the machine.
    from studio.cli.doctor import doctors_report

    return doctors_report(settings, paths, library)


def inspect_for_command_line(path: Path, name: str) -> ModelInfo:
    """The facts of a model's files; the command line comes here only when it needs them. Raises ModelError."""
    return inspect_model(path, name)


def _library(paths: Paths) -> ModelLibraryService:
    return ModelLibraryService(paths.models_folder, read_catalog(), inspect=inspect_model)
