"""What helps when something does not work, and what is stored where: the log bundle, the list of folders, deleting all.

GUI thread, asyncio, no Qt; files are read and written in worker threads. No chat, no prompt and no key goes into a
bundle, and the user sees every line of it before it is saved.
"""

from __future__ import annotations

import asyncio
import json
import logging
import platform
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from engine.system_faults import system_fault
from studio import __version__
from studio.models.errors import SupportError
from studio.models.settings import all_settings
from studio.paths import Paths
from studio.services.settings_service import SettingsService

_MOST_LOG_BYTES = 2_000_000
"""Of each file, from its end."""


_KEPT_FOR_ITSELF = frozenset({"window.recent_commands", "window.export_folder"})


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of a bundle."""

    name: str
    text: str


class StoredKind(Enum):
    """What Layby stores."""

    CHATS = "chats"
    MODELS = "models"
    SETTINGS = "settings"
    CACHE = "cache"
    LOGS = "logs"


@dataclass(frozen=True, slots=True)
class Stored:
    """One kind of data, where it lies and how large it is."""

    kind: StoredKind
    path: Path
    size_bytes: int


class SupportService:
    """`doctor` gives what `layby doctor` prints; it is called in a worker thread."""

    def __init__(
        self, paths: Paths, settings: SettingsService, *, doctor: Callable[[], str]
    ) -> None:
        self.wants_all_deleted = False
        """The user has asked for it; the composition root does it once everything is closed."""
        self._paths = paths
        self._settings = settings
        self._doctor = doctor

    async def bundle(self) -> tuple[BundleFile, ...]:
        """Everything that would go into a log bundle."""
        return await asyncio.to_thread(self._collect)

    async def save(self, files: Sequence[BundleFile], path: Path) -> None:
        """Write a bundle as a zip file. Raises SupportError."""
        try:
            await asyncio.to_thread(_write_zip, files, path)
        except OSError as error:
            raise SupportError(
                f"{path} cannot be written: {system_fault(error)}; choose another place"
            ) from error

    async def stored(self) -> tuple[Stored, ...]:
        """What lies where."""
        return await asyncio.to_thread(self._measure)

    def delete_everything(self) -> list[Path]:
        """Delete chats, settings, keys, caches and logs, but no models; what could not be deleted.

        For when everything is closed: nothing may be open any more.
        """
        logging.shutdown()
        left: list[Path] = []
        for folder in (self._paths.data, self._paths.config, self._paths.cache, self._paths.logs):
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if path != self._paths.models_folder:
                    _delete(path, left)
        return left

    def _collect(self) -> tuple[BundleFile, ...]:
        files = [
            BundleFile("about.txt", _about()),
            BundleFile("doctor.txt", self._doctor()),
            BundleFile("settings.json", self._plain_settings()),
        ]
        logs = self._paths.logs
        for path in sorted(logs.glob("*.log*")) if logs.is_dir() else ():
            files.append(BundleFile(f"logs/{path.name}", _tail(path)))
        return tuple(BundleFile(one.name, self._tidy(one.text)) for one in files)

    def _plain_settings(self) -> str:
        """The settings file without what is secret, or kept by the window for itself."""
        try:
            data = json.loads(self._paths.settings_file.read_text("utf-8"))
        except FileNotFoundError:
            return "{}\n"
        except (OSError, ValueError) as error:
            return f"not readable: {error}\n"
        for declared in all_settings():
            if declared.info.is_secret or declared.key in _KEPT_FOR_ITSELF:
                group = data.get(declared.group)
                if isinstance(group, dict):
                    group.pop(declared.name, None)
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"

    def _tidy(self, text: str) -> str:
        """Without secrets that got there all the same, and without the user's name in paths."""
        for declared in all_settings():
            secret = self._settings.settings.value(declared.key)
            if declared.info.is_secret and isinstance(secret, str) and secret:
                text = text.replace(secret, "***")
        return text.replace(str(Path.home()), "~") if len(Path.home().parts) > 2 else text

    def _measure(self) -> tuple[Stored, ...]:
        paths, models = self._paths, self._paths.models_folder
        return (
            Stored(StoredKind.CHATS, paths.data, _size(paths.data, without=models)),
            Stored(StoredKind.MODELS, models, _size(models)),
            Stored(StoredKind.SETTINGS, paths.config, _size(paths.config)),
            Stored(StoredKind.CACHE, paths.cache, _size(paths.cache)),
            Stored(StoredKind.LOGS, paths.logs, _size(paths.logs)),
        )


def _about() -> str:
    return (
        f"Layby {__version__}\n{platform.platform()}\nPython {platform.python_version()}\n"
        f"{'frozen' if getattr(sys, 'frozen', False) else 'from sources'}\n"
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MOST_LOG_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        return f"not readable: {system_fault(error)}\n"


def _write_zip(files: Sequence[BundleFile], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.name, file.text)


def _size(folder: Path, *, without: Path | None = None) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        if without is not None and path.is_relative_to(without):
            continue
        try:
            total += path.lstat().st_size if path.is_file() else 0
        except OSError:
            continue  # gone meanwhile
    return total


def _delete(path: Path, left: list[Path]) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        left.append(path)
