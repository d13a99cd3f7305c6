"""A download service on a library and a server of its own, and its loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.api import ModelInfo
from fakes.fake_engine import TINY_MODEL
from fakes.file_server import FileServer
from fakes.patience import bounded, until
from studio.models.downloads import Download, DownloadState, Offer
from studio.services.download_service import DownloadService
from studio.services.model_library_service import ModelLibraryService

SIZE = 3_000_000
NAME = "model.gguf"
ROOMY = 1 << 50


@dataclass(slots=True)
class Rig:
    """The service, its library and what both tell."""

    downloads: DownloadService
    library: ModelLibraryService
    arrived: list[str]

    @property
    def only(self) -> Download:
        (download,) = self.downloads.downloads
        return download

    async def until(self, *states: DownloadState) -> Download:
        await until(lambda: self.only.state in states)
        return self.only

    def content(self, name: str = NAME) -> bytes:
        return (self.library.folder / name).read_bytes()


def inspect(path: Path, name: str) -> ModelInfo:
    """Takes any file for a model."""
    return replace(TINY_MODEL, path=path, name=name)


@asynccontextmanager
async def open_rig(
    folder: Path, *, free_bytes: Callable[[Path], int] = lambda _: ROOMY
) -> AsyncIterator[Rig]:
    library = ModelLibraryService(folder / "models", (), inspect=inspect)
    downloads = DownloadService(library, free_bytes=free_bytes, pause_s=lambda _tries: 0.0)
    arrived: list[str] = []
    downloads.arrived.connect(arrived.append)
    await downloads.restore()
    try:
        yield Rig(downloads, library, arrived)
    finally:
        await downloads.close()


def offer(server: FileServer, *names: str, promised: bool = True) -> Offer:
    names = names or (NAME,)
    files = tuple(server.remote(name, promised=promised) for name in names)
    return Offer(name="model", files=files, source="here")


def play(work: Coroutine[Any, Any, None]) -> None:
    """On a loop of its own."""
    asyncio.run(bounded(work))
