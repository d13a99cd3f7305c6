"""Brings one file over HTTP into a `.part` file: from where it stopped, checked, or not at all.

Runs on the loop of the downloads' thread. Nothing is taken on trust: the answer's status, its range, its entity tag
and its length say whether the bytes go on from those that are there; if not, the file is begun anew.
Source of the rules: RFC 9110, sections 13.1.5 (If-Range), 14.2 (Range) and 15.3.7 (206).
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import httpx

from studio.models.downloads import FileProgress, RemoteFile
from studio.models.errors import FetchMismatch, FetchUnavailable, NoSpace
from studio.models.sizes import size_text
from studio.services.download_store import Place
from studio.services.model_files import sha256_of
from studio.services.network_faults import network_fault

SPARE_BYTES = 64 << 20
"""Left free on the disk: a full one harms every program."""
_CHECK_EVERY_BYTES = 64 << 20
_MAGIC = b"GGUF"
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_SAME_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})

OnProgress = Callable[[FileProgress], object]


class TransferBroken(Exception):
    """The connection ended early or the source is busy: the rest may be asked for again."""


class Transfer:
    """One file of one download."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        file: RemoteFile,
        place: Place,
        *,
        on_progress: OnProgress,
        free_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self._client = client
        self._file = file
        self._place = place
        self._on_progress = on_progress
        self._free_bytes = free_bytes or (lambda folder: shutil.disk_usage(folder).free)

    async def run(self, progress: FileProgress) -> FileProgress:
        """Bring what is missing; returns when all bytes are on the disk.

        `progress` says what is known of the file from before. Raises TransferBroken where it is worth another try,
        NoSpace, FetchUnavailable for an answer that will not change, FetchMismatch where the source sends more or
        less than it promised; the bytes so far stay, except where they are not the file's.
        """
        have = self._place.size()
        total = progress.total_bytes if progress.total_bytes is not None else self._file.size_bytes
        if total is not None and have == total:
            return self._tell(replace(progress, done_bytes=have, total_bytes=total))
        if total is not None and have > total:
            self._place.discard()
            have = 0
        self._check_room((total or 0) - have)
        headers = {"accept-encoding": "identity"}
        if have:
            headers["range"] = f"bytes={have}-"
            if progress.etag:
                headers["if-range"] = progress.etag
        try:
            async with self._client.stream("GET", self._file.url, headers=headers) as answer:
                return await self._take(answer, have, progress)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise FetchUnavailable(
                f"{self._file.url} is no address that begins with http:// or https://; check it"
            ) from error
        except httpx.TooManyRedirects as error:
            raise FetchUnavailable(f"{self._file.url} only leads elsewhere; check it") from error
        except httpx.HTTPError as error:
            raise TransferBroken(network_fault(error)) from error

    async def check(self) -> str:
        """The SHA-256 of what has come. Raises FetchMismatch, the bytes thrown away, if it is not the promised one or
        no model at all.
        """
        self._check_kind()
        found = await asyncio.to_thread(sha256_of, self._place.part)
        promised = self._file.sha256
        if promised is not None and found != promised.lower():
            self._place.discard()
            raise FetchMismatch(
                f"{self._file.file_name} came with SHA-256 {found[:12]}…, promised was {promised[:12]}…; it was thrown "
                "away, and trying again fetches only this file"
            )
        return found

    async def _take(
        self, answer: httpx.Response, have: int, progress: FileProgress
    ) -> FileProgress:
        if answer.status_code == 416:
            return self._after_the_end(answer, have, progress)
        _check_status(answer)
        start = _start_of(answer, have)
        if start is None:
            raise TransferBroken("the source sent another part of the file than was asked for")
        total = self._total_of(answer, start)
        known = progress.total_bytes
        if start and known is not None and total is not None and total != known:
            self._place.discard()
            raise TransferBroken("the file has changed at its source; it is begun anew")
        self._check_room((total or 0) - start)
        progress = FileProgress(done_bytes=start, total_bytes=total, etag=_strong_etag(answer))
        self._tell(progress)
        with self._place.part.open("r+b" if start else "wb") as out:
            out.truncate(start)
            out.seek(start)
            progress = await self._copy(answer, out, progress)
            out.flush()
            os.fsync(out.fileno())
        if total is not None and progress.done_bytes < total:
            raise TransferBroken("the connection ended early")
        return self._tell(replace(progress, total_bytes=progress.done_bytes))

    async def _copy(
        self, answer: httpx.Response, out: BinaryIO, progress: FileProgress
    ) -> FileProgress:
        done, total, checked = progress.done_bytes, progress.total_bytes, progress.done_bytes
        is_kind_known = False
        async for chunk in answer.aiter_raw():
            if total is not None and done + len(chunk) > total:
                self._place.discard()
                raise FetchMismatch(
                    f"the source sends more than the {total:,} bytes of {self._file.file_name}; nothing is kept"
                )
            if done - checked >= _CHECK_EVERY_BYTES:
                checked = done
                self._check_room((total or done) - done)
            self._write(out, chunk)
            done += len(chunk)
            if not is_kind_known and done >= len(_MAGIC):
                self._check_kind()
                is_kind_known = True
            progress = self._tell(replace(progress, done_bytes=done))
        return progress

    def _check_kind(self) -> None:
        """Raises FetchMismatch, the bytes thrown away, for what does not begin as a model."""
        head = self._place.head()
        if head.startswith(_MAGIC):
            return
        self._place.discard()
        self._tell(FileProgress())
        name, host = self._file.file_name, httpx.URL(self._file.url).host
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            raise FetchMismatch(
                f"{host} sent a web page in place of {name}; nothing is kept. Give the address of the file itself, or "
                "download it in a browser and add it"
            )
        raise FetchMismatch(
            f"what {host} sent as {name} is no GGUF file; nothing is kept. Check the address"
        )

    def _write(self, out: BinaryIO, chunk: bytes) -> None:
        try:
            out.write(chunk)
            out.flush()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoSpace(
                    f"the disk of {self._place.home} is full; make room, then go on from where it stopped"
                ) from error
            raise

    def _after_the_end(
        self, answer: httpx.Response, have: int, progress: FileProgress
    ) -> FileProgress:
        """The source says that there is nothing after the bytes that are here: they are all, or another file's."""
        match = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("content-range", ""))
        if match is not None and int(match[1]) == have:
            return self._tell(replace(progress, done_bytes=have, total_bytes=have))
        self._place.discard()
        raise TransferBroken("the file at the source is another one now; it is begun anew")

    def _total_of(self, answer: httpx.Response, start: int) -> int | None:
        """Raises FetchMismatch if the source now has a file of another size than it promised."""
        total: int | None = None
        match = _RANGE.fullmatch(answer.headers.get("content-range", ""))
        length = answer.headers.get("content-length", "")
        if answer.status_code == 206 and match is not None and match[3] != "*":
            total = int(match[3])
        elif length.isdecimal():
            total = start + int(length)
        promised = self._file.size_bytes
        if total is not None and promised is not None and total != promised:
            self._place.discard()
            raise FetchMismatch(
                f"{self._file.file_name} has {total:,} bytes at its source, promised were {promised:,}; nothing is kept"
            )
        return total if total is not None else promised

    def _check_room(self, missing: int) -> None:
        free, needed = self._free_bytes(self._place.part.parent), max(missing, 0) + SPARE_BYTES
        if free < needed:
            raise NoSpace(
                f"the disk of {self._place.home} has {size_text(free)} free, {self._file.file_name} needs "
                f"{size_text(needed)} more; make room, then go on from where it stopped"
            )

    def _tell(self, progress: FileProgress) -> FileProgress:
        self._on_progress(progress)
        return progress


def _check_status(answer: httpx.Response) -> None:
    """Raises for what is no answer with the file in it."""
    status = answer.status_code
    host = answer.url.host
    if status in (200, 206):
        packing = answer.headers.get("content-encoding", "identity")
        if packing != "identity":
            raise FetchUnavailable(
                f"{host} sends the file packed ({packing}); give another address"
            )
        return
    if status in _SAME_AGAIN:
        raise TransferBroken(f"{host} answered {status}")
    if status in (401, 403):
        raise FetchUnavailable(
            f"{host} gives this file only to those it knows ({status}); accept its terms there, then download it in "
            "a browser and add the file"
        )
    raise FetchUnavailable(
        f"{host} answered {status} to {answer.url.path[-80:]}; check the address"
    )


def _start_of(answer: httpx.Response, have: int) -> int | None:
    """Where in the file the answer's bytes begin: where those here end, or 0; None: anywhere else."""
    if answer.status_code == 200:
        return 0
    match = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    return have if match is not None and int(match[1]) == have else None


def _strong_etag(answer: httpx.Response) -> str:
    """Only a strong one says that the bytes are the same."""
    etag: str = answer.headers.get("etag", "")
    return etag if etag.startswith('"') else ""
