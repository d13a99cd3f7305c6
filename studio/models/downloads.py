"""Downloads of models: what is to come, how far each is, and what went wrong. Frozen values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from studio.models.errors import FetchError


class DownloadState(Enum):
    """Where a download is."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """The connection was lost; it is tried again by itself."""
    CHECKING = "checking"
    """All bytes are here; their checksum is being computed."""
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"

    @property
    def is_busy(self) -> bool:
        """Whether something is being done for it."""
        return self in (self.RUNNING, self.WAITING, self.CHECKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One file to bring. `size_bytes` and `sha256` are what its source promises; None: it does not say."""

    url: str
    file_name: str
    size_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that can be downloaded: one file, or all parts of a split one."""

    name: str
    files: tuple[RemoteFile, ...]
    source: str
    """Where it comes from, in words: a repository of the hub, or a host."""
    license: str = ""

    @property
    def size_bytes(self) -> int | None:
        """Of all files; None where one does not say."""
        sizes = [file.size_bytes for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """How far one file is."""

    done_bytes: int = 0
    total_bytes: int | None = None
    etag: str = ""
    """Tells whether the source still has the same file when the rest is asked for."""
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One row of the list of downloads."""

    download_id: str
    offer: Offer
    state: DownloadState = DownloadState.QUEUED
    files: tuple[FileProgress, ...] = ()
    bytes_per_s: float = 0.0
    """Over the last few seconds; 0 where nothing comes."""
    error: FetchError | None = field(default=None, compare=False)
    retry_in_s: float = 0.0
    """While WAITING."""

    @property
    def done_bytes(self) -> int:
        return sum(file.done_bytes for file in self.files)

    @property
    def total_bytes(self) -> int | None:
        """None until every file's size is known."""
        totals = [
            progress.total_bytes if progress.total_bytes is not None else file.size_bytes
            for progress, file in zip(self.files, self.offer.files, strict=True)
        ]
        return None if None in totals else sum(total for total in totals if total is not None)

    @property
    def share(self) -> float | None:
        """0 to 1; None while the size is unknown."""
        total = self.total_bytes
        return None if not total else min(1.0, self.done_bytes / total)

    @property
    def seconds_left(self) -> float | None:
        """At the speed of the last few seconds; None where that says nothing."""
        total = self.total_bytes
        if total is None or self.bytes_per_s < 1 or self.state is not DownloadState.RUNNING:
            return None
        return max(0, total - self.done_bytes) / self.bytes_per_s

    def with_file(self, index: int, progress: FileProgress) -> Download:
        """The same with one file further."""
        files = (*self.files[:index], progress, *self.files[index + 1 :])
        return replace(self, files=files)
