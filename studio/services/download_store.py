"""Downloads on disk: a note for each in the library's hidden folder, beside the bytes that have come. Blocking.

The notes outlive the program: a download that was under way when it ended is there again, paused at its offset.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studio.models.downloads import Download, DownloadState, FileProgress, Offer, RemoteFile
from studio.models.errors import FetchError
from studio.services.safe_file import set_aside, write_atomically

_log = logging.getLogger(__name__)

_NOTE = "download.json"
_HEAD_BYTES = 256
_KEPT = frozenset({DownloadState.QUEUED, DownloadState.PAUSED, DownloadState.FAILED})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is collected, and the folder of the user's that it is meant for."""

    part: Path
    home: Path

    def size(self) -> int:
        """Bytes that are there."""
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0

    def head(self) -> bytes:
        """The first bytes that are there."""
        with self.part.open("rb") as file:
            return file.read(_HEAD_BYTES)

    def discard(self) -> None:
        self.part.unlink(missing_ok=True)


class DownloadStore:
    """One folder for each download, named by its id."""

    def __init__(self, models_folder: Path) -> None:
        self._home = models_folder
        self._folder = models_folder / ".downloads"

    def place(self, download: Download, index: int) -> Place:
        """Where a file's bytes are collected."""
        folder = self._folder / download.download_id
        return Place(folder / f"{index}.part", self._home)

    def save(self, download: Download) -> None:
        """Write the note. Raises OSError."""
        folder = self._folder / download.download_id
        record = {
            "offer": asdict(download.offer),
            "files": [asdict(progress) for progress in download.files],
            "state": download.state.value,
        }
        if (error := download.error) is not None:
            record["error"] = {"code": error.code, "text": str(error)}
        write_atomically(folder / _NOTE, json.dumps(record, indent=2).encode())

    def forget(self, download: Download) -> None:
        """Delete the note and whatever bytes lie beside it."""
        shutil.rmtree(self._folder / download.download_id, ignore_errors=True)

    def load(self) -> tuple[Download, ...]:
        """Those of before, oldest first; what was under way is paused. Broken notes are set aside."""
        try:
            notes = sorted(
                self._folder.glob(f"*/{_NOTE}"), key=lambda path: path.parent.stat().st_ctime
            )
        except OSError:
            return ()
        return tuple(found for note in notes if (found := self._read(note)) is not None)

    def _read(self, note: Path) -> Download | None:
        try:
            record = json.loads(note.read_text("utf-8"))
            download = _download_of(note.parent.name, record)
        except OSError as error:
            _log.warning("the note of a download cannot be read: %s", error)
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            _log.warning(
                "the note of a download was broken (%s), kept as %s", error, set_aside(note)
            )
            return None
        for index, progress in enumerate(download.files):
            if not progress.is_done:
                size = self.place(download, index).size()
                moved = FileProgress(
                    done_bytes=size, total_bytes=progress.total_bytes, etag=progress.etag
                )
                download = download.with_file(index, moved)
        return download


def _download_of(download_id: str, record: dict[str, Any]) -> Download:
    offer = record["offer"]
    files = tuple(RemoteFile(**file) for file in offer["files"])
    progress = tuple(FileProgress(**each) for each in record["files"])
    if len(progress) != len(files):
        raise ValueError("it has progress for other files than it names")
    state = DownloadState(record["state"])
    return Download(
        download_id=download_id,
        offer=Offer(**{**offer, "files": files}),
        state=state if state in _KEPT - {DownloadState.QUEUED} else DownloadState.PAUSED,
        files=progress,
        error=_error_of(record.get("error")) if state is DownloadState.FAILED else None,
    )


def _error_of(record: object) -> FetchError | None:
    """The error of a note, by its code; None where another version has written it in another way."""
    if not isinstance(record, dict) or not isinstance(text := record.get("text"), str):
        return None
    kinds = {kind.code: kind for kind in FetchError.__subclasses__()}
    return kinds.get(str(record.get("code")), FetchError)(text)
