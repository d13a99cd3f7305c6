"""The window's model: loads, unloads and fetches it, and tells how far that is. GUI thread, asyncio, no Qt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.api import EngineState, LoadOptions, ModelInfo
from engine.client import EngineClient
from studio.models.engine_state import FetchProgress, ModelStatus
from studio.models.model_library import CatalogEntry, ModelEntry
from studio.models.signal import Signal
from studio.services.model_library_service import ModelLibraryService
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService

InspectModel = Callable[[Path, str], ModelInfo]
"""Reads the facts of a model's files without loading them; given by the composition root."""


class ModelService:
    """`status`, `entries` and `fetching` are the state; each has a signal. Errors become notices, not exceptions."""

    def __init__(
        self,
        client: EngineClient,
        library: ModelLibraryService,
        *,
        settings: SettingsService,
        notices: NoticeService,
        inspect: InspectModel,
    ) -> None:
        self.status = ModelStatus()
        self.entries: tuple[ModelEntry, ...] = ()
        """The library as last scanned (`refresh`)."""
        self.fetching: FetchProgress | None = None
        """Set while a model is being fetched."""
        self.changed: Signal[[]] = Signal()
        """`status` changed."""
        self.library_changed: Signal[[]] = Signal()
        """`entries` changed."""
        self.fetch_changed: Signal[[]] = Signal()
        """`fetching` changed."""
        raise NotImplementedError

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
    def catalog(self) -> tuple[CatalogEntry, ...]:
        """The models that can be fetched."""
        raise NotImplementedError

    async def refresh(self) -> None:
        """Scan the library again."""
        raise NotImplementedError

    async def inspect(self, name_or_path: str) -> ModelInfo | None:
        """The facts of a model without loading it; None (and a notice) if it cannot be read."""
        raise NotImplementedError

    async def load(self, name_or_path: str, options: LoadOptions | None = None) -> bool:
        """Load a model and remember it; True once it is ready. `options` None: as the settings say."""
        raise NotImplementedError

    async def unload(self) -> None:
        """Free the model, also while it is loading."""
        raise NotImplementedError

    async def fetch(self, name: str) -> ModelEntry | None:
        """Fetch a model of the catalogue into the library; None (and a notice) if that failed or was cancelled."""
        raise NotImplementedError

    def cancel_fetch(self) -> None:
        """End the fetch that is running, if one is."""
        raise NotImplementedError

    async def add(self, path: Path) -> ModelEntry | None:
        """Remember a model elsewhere on disk; None (and a notice) if it is none."""
        raise NotImplementedError

    async def remove(self, name: str) -> bool:
        """Take a model out of the library; only files the library fetched are deleted. False (and a notice) on failure."""
        raise NotImplementedError

    async def close(self) -> None:
        """End a running fetch and listen no more."""
        raise NotImplementedError
