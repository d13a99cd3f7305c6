"""One download on the downloads' thread: its files one after another, tried again, checked, and moved into the library.

What it has to tell it tells as whole `Download` values, a few times a second.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx

from studio.models.downloads import Download, DownloadState, FileProgress
from studio.models.errors import FetchError
from studio.services.download_store import DownloadStore
from studio.services.model_library_service import ModelLibraryService
from studio.services.transfer import Transfer, TransferBroken

MOST_TRIES = 6
"""In a row without a byte; each byte that comes starts the count anew."""
_TELL_EVERY_S = 0.25
_PULSE_S = 0.5
_SPEED_OVER_S = 4.0


class DownloadJob:
    """One download on the downloads' thread, from its state to the library."""

    def __init__(
        self,
        download: Download,
        store: DownloadStore,
        library: ModelLibraryService,
        *,
        free_bytes: Callable[[Path], int] | None,
        pause_s: Callable[[int], float],
        tell: Callable[[Download], object],
    ) -> None:
        self._download = download
        self._store = store
        self._library = library
        self._free_bytes = free_bytes
        self._pause_s = pause_s
        self._tell = tell
        self.has_arrived = False
        """The model is in the library."""
        self._told_s = 0.0
        self._marks: deque[tuple[float, int]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def run(self, client: httpx.AsyncClient) -> None:
        """Raises FetchError, with what has come still there."""
        self._task = asyncio.current_task()
        pulse = asyncio.create_task(self._keep_telling())
        try:
            for index, progress in enumerate(self._download.files):
                if not progress.is_done:
                    await self._bring(client, index)
            moving = asyncio.ensure_future(asyncio.to_thread(self._move_in))
            try:
                await asyncio.shield(moving)
            except asyncio.CancelledError:
                await moving  # a moment; half in would be worse
                raise
        finally:
            pulse.cancel()

    async def end(self, _client: httpx.AsyncClient) -> None:
        """Stop, and return when all files are closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _bring(self, client: httpx.AsyncClient, index: int) -> None:
        file = self._download.offer.files[index]
        place = self._store.place(self._download, index)
        place.part.parent.mkdir(parents=True, exist_ok=True)

        def on_progress(progress: FileProgress) -> None:
            before = self._download.files[index]
            self._put(self._download.with_file(index, progress))
            if (before.etag, before.total_bytes) != (progress.etag, progress.total_bytes):
                self._store.save(self._download)  # whatever ends the program, the next one goes on

        transfer = Transfer(
            client, file, place, on_progress=on_progress, free_bytes=self._free_bytes
        )
        tries = 0
        while True:
            before = place.size()
            try:
                await transfer.run(self._download.files[index])
                break
            except TransferBroken as error:
                tries = 1 if place.size() > before else tries + 1
                if tries >= MOST_TRIES:
                    raise FetchError(
                        f"{error}, {tries} times in a row; go on when the network is back"
                    ) from error
                await self._wait(tries)
        self._put(replace(self._download, state=DownloadState.CHECKING), now=True)
        try:
            await transfer.check()
        except FetchError:
            self._put(self._download.with_file(index, FileProgress()), now=True)
            raise
        done = replace(self._download.files[index], is_done=True)
        self._put(replace(self._download.with_file(index, done), state=DownloadState.RUNNING))
        await asyncio.to_thread(self._store.save, self._download)

    async def _wait(self, tries: int) -> None:
        pause_s = self._pause_s(tries)
        self._marks.clear()
        waiting = replace(
            self._download, state=DownloadState.WAITING, retry_in_s=pause_s, bytes_per_s=0.0
        )
        self._put(waiting, now=True)
        await asyncio.to_thread(self._store.save, self._download)
        await asyncio.sleep(pause_s)
        self._put(replace(self._download, state=DownloadState.RUNNING, retry_in_s=0.0), now=True)

    def _move_in(self) -> None:
        """All files are right: put them into the library's folder, the first part last."""
        files = self._download.offer.files
        for index, file in reversed(list(enumerate(files))):
            place = self._store.place(self._download, index)
            target = self._library.folder / file.file_name
            if place.part.exists():
                os.replace(place.part, target)
        self._library.record_files({file.file_name: file.sha256 for file in files})
        self._store.forget(self._download)
        self.has_arrived = True

    async def _keep_telling(self) -> None:
        """Where nothing comes, say so: a speed of a while ago would be a lie."""
        while True:
            await asyncio.sleep(_PULSE_S)
            self._put(self._download)

    def _put(self, download: Download, *, now: bool = False) -> None:
        """Tell the window, a few times a second at most."""
        self._download = download
        moment_s = time.monotonic()
        if not now and moment_s - self._told_s < _TELL_EVERY_S:
            return
        self._told_s = moment_s
        self._marks.append((moment_s, download.done_bytes))
        while self._marks[0][0] < moment_s - _SPEED_OVER_S:
            self._marks.popleft()
        from_s, from_bytes = self._marks[0]
        span_s = moment_s - from_s
        speed = (download.done_bytes - from_bytes) / span_s if span_s > 0 else 0.0
        self._download = replace(download, bytes_per_s=max(0.0, speed))
        self._tell(self._download)
