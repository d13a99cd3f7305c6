"""The window's model: loads, unloads and fetches it, and tells how far that is. GUI thread, asyncio, no Qt.

Blocking work of the library runs in two threads of its own, so that a scan need not wait for a fetch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from engine.api import EngineState, LoadModel, LoadOptions, ModelChanged, ModelInfo, UnloadModel
from engine.client import EngineClient
from engine.errors import EngineError, ModelError, ModelUnavailable
from engine.system_faults import system_fault
from studio.models.engine_state import FetchProgress, ModelStatus
from studio.models.errors import FetchError, LibraryError, StudioError
from studio.models.model_library import (
    CatalogEntry,
    FoundModel,
    ModelEntry,
    ModelFacts,
)
from studio.models.signal import Signal
from studio.paths import ModelCaches
from studio.services.found_models import find_models, models_below
from studio.services.last_model import LastModel
from studio.services.load_settings_store import LoadSettingsStore
from studio.services.model_facts import ModelFactsReader
from studio.services.model_fetcher import ModelFetcher
from studio.services.model_library_service import ModelLibraryService
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService

_T = TypeVar("_T")
Report = Callable[[EngineError | StudioError], None]

_log = logging.getLogger(__name__)

_FAILED_TO_LOAD = frozenset({EngineState.FAILED, EngineState.STOPPED})
_OUTDATES_NOTICE = frozenset({EngineState.LOADING, EngineState.READY, EngineState.FAILED})
"""On coming to one of these, what was said about there being no model no longer holds."""


@dataclass(frozen=True, slots=True)
class _Loading:
    """The model asked for last, until it is ready or will never be."""

    info: ModelInfo
    is_ready: asyncio.Future[bool]


class ModelService:
    """`status`, `entries` and `fetching` are the state; each has a signal. Errors become notices, not exceptions."""

    def __init__(
        self,
        client: EngineClient,
        library: ModelLibraryService,
        fetcher: ModelFetcher,
        *,
        settings: SettingsService,
        load_settings: LoadSettingsStore,
        facts: ModelFactsReader,
        caches: ModelCaches,
        notices: NoticeService,
        is_resting: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_resting` tells whether the model was unloaded for want of use and comes back by itself."""
        snapshot = client.snapshot()
        self.status = ModelStatus(state=snapshot.state, model=snapshot.model)
        self.entries: tuple[ModelEntry, ...] = ()
        """The library as last scanned (`refresh`)."""
        self.facts: dict[Path, ModelFacts] = {}
        """What is known of the models in `entries` and `found`, by their paths."""
        self.outside: tuple[ModelEntry, ...] = ()
        """Models that are loaded, or were the last time, and are not in the library; known as it is (`refresh`)."""
        self.found: tuple[FoundModel, ...] = ()
        """Models of other programs that are not in the library, as last looked for (`look_around`)."""
        self.fetching: FetchProgress | None = None
        """Set while a model is being fetched."""
        self.changed: Signal[[]] = Signal()
        """`status` or `is_coming` changed."""
        self.library_changed: Signal[[]] = Signal()
        """`entries`, `outside`, `found` or `facts` changed."""
        self.fetch_changed: Signal[[]] = Signal()
        """`fetching` changed."""
        self._client = client
        self._library = library
        self._fetcher = fetcher
        self._last = LastModel(settings, notices)
        self.load_settings = load_settings
        self._reader = facts
        self._caches = caches
        self._notices = notices
        self._is_resting = is_resting
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="layby-library")
        self._reading_facts = asyncio.Lock()
        self._num_expected = 0
        self._load_problems: set[str] = set()  # codes of notices about loads
        self._loading: _Loading | None = None
        self._fetch_cancelled = threading.Event()
        self._fetch_ended = asyncio.Event()
        self._fetch_ended.set()
        self._disconnect = client.on_model_changed(self._on_model_changed)

    @property
    def state(self) -> EngineState:
        return self.status.state

    @property
    def model(self) -> ModelInfo | None:
        return self.status.model

    @property
    def progress(self) -> float:
        return self.status.progress

    @property
    def is_resting(self) -> bool:
        """There is no model now, and the next request brings back the one that nobody had used for a while."""
        return self._is_resting()

    @property
    def is_coming(self) -> bool:
        """One is being fetched or loaded, or is about to be."""
        is_loading = self.state is EngineState.LOADING or self.fetching is not None
        return is_loading or self._num_expected > 0

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """Within it a model is on its way, also between its fetch and its load."""
        self._num_expected += 1
        self.changed.emit()
        try:
            yield
        finally:
            self._num_expected -= 1
            self.changed.emit()

    @property
    def catalog(self) -> tuple[CatalogEntry, ...]:
        """The models that can be fetched."""
        return self._library.catalog

    async def refresh(self) -> None:
        """Scan the library again, and read what is new in it."""
        await self.scan()
        await self._read_facts()

    async def scan(self) -> None:
        """Look again which models there are, and no closer."""
        entries = await self._try(self._library.entries)
        if entries is not None:
            loaded = self.model.path if self.model is not None else None
            used = [path for path in (loaded, self._last.path) if path is not None]
            outside = await self._try(partial(self._library.outside, used, entries)) or ()
            if (entries, outside) != (self.entries, self.outside):
                self.entries, self.outside = entries, outside
                self.library_changed.emit()

    async def look_around(self) -> None:
        """Look again for models that other programs keep on this computer."""
        found = await self._try(partial(find_models, self._caches))
        own = {entry.path for entry in self.entries}
        left = tuple(each for each in found or () if each.path not in own)
        if left != self.found:
            self.found = left
            self.library_changed.emit()
        await self._read_facts()

    async def _read_facts(self) -> None:
        """In a thread of its own: a library on a slow disk holds up nobody."""
        models = [(each.name, each.path) for each in (*self.entries, *self.outside)]
        models += [(each.name, each.path) for each in self.found]
        async with self._reading_facts:
            facts = await self._try(partial(self._reader.read, models))
        if facts is not None and facts != self.facts:
            self.facts = facts
            self.library_changed.emit()

    async def inspect(self, name_or_path: str) -> ModelInfo | None:
        """The facts of a model without loading it; None (and a notice) if it cannot be read."""
        return await self._try(partial(self._library.look_at, name_or_path))

    async def load(
        self,
        name_or_path: str,
        options: LoadOptions | None = None,
        *,
        carries_on: bool = False,
    ) -> bool:
        """Load a model and remember it; True once it is ready, False (and a notice) if it cannot be.

        `options` None: as the settings say, and what is set for this model. `carries_on`: it is the same model, and
        what is alive goes on with it. A later `load` or `unload` ends this one with False.
        """
        with self.expecting():
            return await self._load(name_or_path, options, carries_on=carries_on)

    async def _load(
        self, name_or_path: str, options: LoadOptions | None, *, carries_on: bool
    ) -> bool:
        info = await self._try(partial(self._library.look_at, name_or_path), self._report_load)
        if info is None:
            return False
        try:
            options = options or self.load_settings.options_for(info.path)
        except EngineError as error:
            self._report_load(error)
            return False
        self._end_loading(is_ready=False)
        loading = _Loading(info, asyncio.get_running_loop().create_future())
        self._loading = loading
        self._set_status(ModelChanged(state=EngineState.LOADING, model=None), info)
        started_s = time.monotonic()
        self._client.control(
            LoadModel(path=info.path, name=info.name, options=options, carries_on=carries_on)
        )
        if not await loading.is_ready:
            return False
        _log.info("loaded %s in %.1f s", info.name, time.monotonic() - started_s)
        self._last.remember(info, self.entries)
        return True

    async def unload(self) -> None:
        """Free the model, also while it is loading."""
        self._end_loading(is_ready=False)
        self._client.control(UnloadModel())

    async def fetch(self, name: str) -> ModelEntry | None:
        """Fetch a model of the catalogue into the library; None (and a notice) if that failed or was cancelled."""
        if not self._fetch_ended.is_set():
            self._notices.report(
                FetchError("a model is being fetched already; wait, or cancel it first")
            )
            return None
        self._fetch_ended.clear()
        self._fetch_cancelled.clear()
        loop = asyncio.get_running_loop()

        def on_progress(progress: FetchProgress) -> None:
            loop.call_soon_threadsafe(self._set_fetching, progress)

        self._set_fetching(FetchProgress(name=name, done_bytes=0, total_bytes=0))
        try:
            return await self._try(
                partial(
                    self._fetcher.fetch,
                    name,
                    on_progress=on_progress,
                    cancelled=self._fetch_cancelled,
                )
            )
        finally:
            self.cancel_fetch()  # the thread is still at it if this task was cancelled
            self._set_fetching(None)
            await self.refresh()
            self._fetch_ended.set()

    def cancel_fetch(self) -> None:
        """End the fetch that is running, if one is."""
        self._fetch_cancelled.set()

    async def add(self, path: Path) -> ModelEntry | None:
        """Remember a model elsewhere on disk; None (and a notice) if it is none."""
        entry = await self._try(partial(self._library.add, path))
        await self.refresh()
        return entry

    async def add_found(self, found: FoundModel) -> ModelEntry | None:
        """Link a model of another program into the library; None (and a notice) if it is not sound."""
        entry = await self._try(partial(self._library.add, found.path, found.name))
        await self.refresh()
        await self.look_around()
        return entry

    async def add_folder(self, folder: Path) -> int:
        """Remember every sound model that lies in `folder` or below; how many they are. One notice tells of others."""
        found = await self._try(partial(models_below, folder))
        problems: list[EngineError | StudioError] = []
        if found == ():
            problems.append(LibraryError(f"there is no model in {folder}; choose another folder"))
        num_added = 0
        for path in found or ():
            entry = await self._try(partial(self._library.add, path), problems.append)
            num_added += entry is not None
        if len(problems) > 1:
            first, more = problems[0], len(problems) - 1
            problems = [ModelError(f"{first}; {more} more in {folder} cannot be used either")]
        for problem in problems:
            self._notices.report(problem)
        await self.refresh()
        return num_added

    async def rename(self, name: str, new_name: str) -> bool:
        """Call a model otherwise; False (and a notice) if that cannot be."""
        entry = await self._try(partial(self._library.rename, name, new_name))
        if entry is not None:
            self._last.rename(name, entry.name)
        await self.refresh()
        return entry is not None

    async def relocate(self, name: str, path: Path) -> bool:
        """Say where a linked model lies now; its settings go with it. False (and a notice) if it is not there."""
        old = next((entry.path for entry in self.entries if entry.name == name), None)
        entry = await self._try(partial(self._library.relocate, name, path))
        if entry is not None and old is not None:
            try:
                self.load_settings.move(old, entry.path)
            except StudioError as error:
                self._notices.report(error)
        await self.refresh()
        return entry is not None

    async def remove(self, name: str) -> bool:
        """Take a model out of the library, deleting only a file that the library fetched.

        False (and a notice) if it cannot be removed.
        """
        entry = await self._try(partial(self._library.remove, name))
        await self.refresh()
        return entry is not None

    async def close(self) -> None:
        """End a running fetch and listen no more."""
        self.cancel_fetch()
        self._end_loading(is_ready=False)
        self._disconnect()
        await self._fetch_ended.wait()
        self._workers.shutdown(wait=True)

    async def _try(self, work: Callable[[], _T], report: Report | None = None) -> _T | None:
        """The result of blocking work; an error becomes a notice and None."""
        report = report or self._notices.report
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except (EngineError, StudioError) as error:
            report(error)
        except OSError as error:
            report(LibraryError(f"{error.filename}: {system_fault(error)}"))
        return None

    def _report_load(self, error: EngineError | StudioError) -> None:
        """Why a model is not loaded; that matters no more once one is."""
        self._load_problems.add(error.code)
        self._notices.report(error)

    def _on_model_changed(self, event: ModelChanged) -> None:
        loading = self._loading
        if loading is None:
            self._set_status(event, event.model)
        elif event.state is EngineState.LOADING:
            self._set_status(event, loading.info)
        elif event.state is EngineState.READY and event.model is not None:
            self._set_status(event, event.model)
            if event.error is not None or event.model.path == loading.info.path:
                self._end_loading(is_ready=event.error is None)
        elif event.state in _FAILED_TO_LOAD:
            self._set_status(event, None)
            self._end_loading(is_ready=False)
        # NO_MODEL here is the end of the load that this one has replaced
        if event.error is not None:  # after a READY, which makes up for what was told before
            self._report_load(event.error)

    def _end_loading(self, *, is_ready: bool) -> None:
        loading, self._loading = self._loading, None
        if loading is not None and not loading.is_ready.done():
            loading.is_ready.set_result(is_ready)

    def _set_status(self, event: ModelChanged, model: ModelInfo | None) -> None:
        if event.state is not self.state and event.state in _OUTDATES_NOTICE:
            self._notices.resolve(ModelUnavailable.code)
        if event.state is EngineState.READY:
            while self._load_problems:
                self._notices.resolve(self._load_problems.pop())
        self.status = ModelStatus(
            state=event.state, model=model, progress=event.progress, error=event.error
        )
        self.changed.emit()

    def _set_fetching(self, progress: FetchProgress | None) -> None:
        self.fetching = progress
        self.fetch_changed.emit()
