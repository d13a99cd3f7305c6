"""The queue of downloads: at most a few at once, each paused, continued, cancelled and checked on its own.

GUI thread, asyncio, no Qt. The bytes come on the downloads' own thread (`DownloadThread`); what it tells arrives here
a few times a second. Nothing is asked of the network before the user asks for it; what was under way when Layby ended
waits, paused, to be continued.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.system_faults import system_fault
from studio.models.downloads import Download, DownloadState, FileProgress, Offer
from studio.models.errors import FetchError, LibraryError
from studio.models.signal import Signal
from studio.services.download_store import DownloadStore
from studio.services.download_thread import DownloadThread
from studio.services.model_library_service import ModelLibraryService

if TYPE_CHECKING:
    from studio.services.download_job import DownloadJob

_log = logging.getLogger(__name__)

AT_ONCE = 2


class DownloadService:
    """`downloads` is the list; `changed` is emitted with each change of it. Errors stand in their rows."""

    def __init__(
        self,
        library: ModelLibraryService,
        *,
        free_bytes: Callable[[Path], int] | None = None,
        pause_s: Callable[[int], float] = lambda tries: min(2.0**tries, 30.0),
    ) -> None:
        """`pause_s` gives the seconds before another try, from how many have failed in a row."""
        self.downloads: tuple[Download, ...] = ()
        self.changed: Signal[[]] = Signal()
        self.arrived: Signal[[str]] = Signal()
        """A model of this name is in the library now."""
        self._library = library
        self._store = DownloadStore(library.folder)
        self._thread = DownloadThread()
        self._free_bytes = free_bytes
        self._pause_s = pause_s
        self._jobs: dict[str, tuple[DownloadJob, Future[None]]] = {}

    async def restore(self) -> None:
        """Bring back the downloads of before, paused."""
        self.downloads = await asyncio.to_thread(self._store.load)
        self.changed.emit()

    async def add(self, offer: Offer) -> Download:
        """Put a model into the queue. Raises LibraryError where a file of that name is in the way."""
        twin = next((each for each in self.downloads if _is_same(each.offer, offer)), None)
        if twin is not None:
            if not twin.state.is_busy:
                await self.go_on(twin.download_id)
            return twin
        for file in offer.files:
            if (self._library.folder / file.file_name).exists():
                raise LibraryError(
                    f"{file.file_name} is in the library's folder already; remove or rename that model first"
                )
        download = Download(
            download_id=uuid.uuid4().hex,
            offer=offer,
            files=tuple(FileProgress() for _ in offer.files),
        )
        self.downloads = (*self.downloads, download)
        self._note(download)
        self._advance()
        return download

    async def pause(self, download_id: str) -> None:
        """Keep what has come, and do no more."""
        await self._end_job(download_id)
        self._change(download_id, state=DownloadState.PAUSED)
        self._advance()

    async def go_on(self, download_id: str) -> None:
        """Go on from where it stopped; after a failure, with the file that failed."""
        if (download := self._find(download_id)) is not None and not download.state.is_busy:
            self._change(download_id, state=DownloadState.QUEUED, error=None)
            self._advance()

    async def cancel(self, download_id: str) -> None:
        """Throw away what has come and forget it."""
        await self._end_job(download_id)
        download = self._find(download_id)
        if download is not None:
            self.downloads = tuple(each for each in self.downloads if each is not download)
            await asyncio.to_thread(self._store.forget, download)
            self.changed.emit()
        self._advance()

    def dismiss_done(self) -> None:
        """Take those that are done off the list."""
        self.downloads = tuple(
            each for each in self.downloads if each.state is not DownloadState.DONE
        )
        self.changed.emit()

    async def close(self) -> None:
        """End all work; what was under way is paused and noted."""
        for download in self.downloads:
            if download.state.is_busy or download.state is DownloadState.QUEUED:
                await self._end_job(download.download_id)
                self._change(download.download_id, state=DownloadState.PAUSED)
        await asyncio.to_thread(self._thread.close)

    def _advance(self) -> None:
        """Start the next ones while there are seats."""
        for download in self.downloads:
            if len(self._jobs) >= AT_ONCE:
                return
            if download.state is DownloadState.QUEUED and download.download_id not in self._jobs:
                self._start(download)

    def _start(self, download: Download) -> None:
        from studio.services.download_job import DownloadJob  # with httpx, see `download_thread`

        loop = asyncio.get_running_loop()
        job = DownloadJob(
            replace(download, state=DownloadState.RUNNING, error=None),
            self._store,
            self._library,
            free_bytes=self._free_bytes,
            pause_s=self._pause_s,
            tell=lambda news: loop.call_soon_threadsafe(self._hear, news),
        )
        self._change(download.download_id, state=DownloadState.RUNNING, error=None)
        future = self._thread.submit(job.run)
        self._jobs[download.download_id] = (job, future)
        future.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._on_ended, download.download_id, done)
        )

    async def _end_job(self, download_id: str) -> None:
        """Returns when nothing is done for it any more; it may have arrived in the last moment."""
        if (found := self._jobs.pop(download_id, None)) is None:
            return
        job, _ = found
        await asyncio.wrap_future(self._thread.submit(job.end))
        if job.has_arrived:
            self._arrive(download_id)

    def _hear(self, news: Download) -> None:
        if news.download_id in self._jobs:
            self._put(news)

    def _on_ended(self, download_id: str, done: Future[None]) -> None:
        job, future = self._jobs.get(download_id, (None, None))
        if job is None or future is not done:
            return  # paused or cancelled meanwhile
        del self._jobs[download_id]
        error = None if done.cancelled() else done.exception()
        if isinstance(error, FetchError):
            _log.info("a download failed: %s", error)
            self._change(download_id, state=DownloadState.FAILED, error=error)
        elif error is not None:
            _log.error("a download failed", exc_info=error)
            problem = FetchError("it could not be written; the log has the particulars")
            if isinstance(error, OSError):
                problem = FetchError(f"it could not be written: {system_fault(error)}")
            self._change(download_id, state=DownloadState.FAILED, error=problem)
        elif job.has_arrived:
            self._arrive(download_id)
        self._advance()

    def _arrive(self, download_id: str) -> None:
        if (download := self._find(download_id)) is not None:
            files = tuple(replace(file, is_done=True) for file in download.files)
            self._put(replace(download, state=DownloadState.DONE, files=files, bytes_per_s=0.0))
            self.arrived.emit(download.offer.files[0].file_name)

    def _find(self, download_id: str) -> Download | None:
        return next((each for each in self.downloads if each.download_id == download_id), None)

    def _change(
        self, download_id: str, *, state: DownloadState, error: FetchError | None = None
    ) -> None:
        download = self._find(download_id)
        if download is not None and download.state is not DownloadState.DONE:
            changed = replace(download, state=state, error=error, bytes_per_s=0.0, retry_in_s=0.0)
            self._put(changed)
            self._note(changed)

    def _put(self, download: Download) -> None:
        self.downloads = tuple(
            download if each.download_id == download.download_id else each
            for each in self.downloads
        )
        self.changed.emit()

    def _note(self, download: Download) -> None:
        """Small, and seldom: at the turns of a download."""
        try:
            self._store.save(download)
        except OSError as error:
            _log.warning("a download cannot be noted for the next start: %s", error)


def _is_same(one: Offer, other: Offer) -> bool:
    return [file.file_name for file in one.files] == [file.file_name for file in other.files]
