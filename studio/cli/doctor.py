"""`layby doctor`: checks everything Layby needs, a line each, with the remedy where one is needed."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from engine.errors import ModelError
from studio import __version__
from studio.cli.checks import Check, Level, fail, ok, warn
from studio.cli.machine_checks import check_machine
from studio.cli.package_checks import check_packages
from studio.models.local_server_settings import LocalServerSettings
from studio.paths import Paths
from studio.services.model_library_service import ModelLibraryService
from studio.services.settings_service import SettingsService

_LITTLE_DISK_BYTES = 1 << 30
_HEALTH_TIMEOUT_S = 2.0


def run_doctor(
    settings: SettingsService, paths: Paths, library: ModelLibraryService, *, is_deep: bool
) -> int:
    """Print every check as it is done; 1 if one of them failed."""
    has_failed = False
    for check in examine(settings, paths, library, is_deep=is_deep):
        sys.stdout.write(f"{_line(check)}\n")
        sys.stdout.flush()
        has_failed = has_failed or check.level is Level.FAIL
    return 1 if has_failed else 0


def doctors_report(settings: SettingsService, paths: Paths, library: ModelLibraryService) -> str:
    """All of it as one text, for a log bundle."""
    checks = examine(settings, paths, library, is_deep=False)
    return "".join(f"{_line(check)}\n" for check in checks)


def examine(
    settings: SettingsService, paths: Paths, library: ModelLibraryService, *, is_deep: bool
) -> Iterator[Check]:
    """Every check, one after another."""
    return chain(
        [ok("layby", f"{__version__}, SQLite {sqlite3.sqlite_version}")],
        _survive("packages", check_packages()),
        _survive("machine", check_machine(is_deep=is_deep)),
        _survive("folders", check_folders(paths)),
        _survive("settings", check_settings(settings)),
        _survive("models", check_library(library)),
        _survive("port", check_port(settings.settings.server)),
    )


def _line(check: Check) -> str:
    return f"{check.level.value:<4}  {check.subject:<9}  {check.text}"


def _survive(subject: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks, up to one that raises, which becomes a failed one: the other lines are still wanted."""
    try:
        yield from checks
    except Exception as error:  # noqa: BLE001 - a broken machine must not silence its doctor
        yield fail(subject, f"cannot be checked: {error or type(error).__name__}")


def check_folders(paths: Paths) -> Iterator[Check]:
    """Whether each folder can be written, and whether the disk of the models has room."""
    for name, folder in (
        ("data", paths.data),
        ("config", paths.config),
        ("cache", paths.cache),
        ("logs", paths.logs),
    ):
        existing = _nearest_existing(folder)
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            yield fail(
                name,
                f"{folder} cannot be written; make {existing} a writable folder, or set LAYBY_HOME",
            )
        else:
            yield ok(name, str(folder))
    free = shutil.disk_usage(_nearest_existing(paths.data)).free
    text = f"{free / 2**30:.1f} GiB free for models and chats"
    yield ok("disk", text) if free >= _LITTLE_DISK_BYTES else warn("disk", f"{text}; make room")


def check_settings(settings: SettingsService) -> Iterator[Check]:
    """Only a settings file that could not be read is worth a line."""
    if settings.problem is not None:
        yield warn("settings", str(settings.problem))


def check_library(library: ModelLibraryService) -> Iterator[Check]:
    """How many models there are, which links lead nowhere, and which files are not sound."""
    entries = library.entries()
    present = [entry for entry in entries if not entry.is_missing]
    if present:
        size = sum(entry.size_bytes for entry in present) / 1e9
        yield ok(
            "models",
            f"{len(present)} with {size:.1f} GB: {', '.join(entry.name for entry in present)}",
        )
    else:
        offer = library.catalog[0].name
        yield warn(
            "models",
            f"the library is empty; fetch the starter model with: layby models get {offer}",
        )
    for entry in entries:
        if entry.is_missing:
            yield warn(
                "models",
                f"{entry.name} is not at {entry.path}; bring it back, or: layby models remove {entry.name}",
            )
            continue
        try:
            library.inspect(entry)
        except ModelError as error:
            yield warn("models", f"{entry.name} cannot be loaded: {error}")


def check_port(server: LocalServerSettings) -> Iterator[Check]:
    """Whether the server could listen where the settings say, or does so already."""
    where = f"{server.host}:{server.port}"
    try:
        family, kind, *_, address = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # as the server does: a port in TIME_WAIT is free
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if state := _ask_layby(server):
            yield ok("port", f"a Layby server answers at {where}: {state}")
            return
        reason = error.strerror or str(error)
        yield warn(
            "port", f"{where} is not free ({reason}); choose another with --port or in the settings"
        )
        return
    yield ok("port", f"{where} is free")


def _ask_layby(server: LocalServerSettings) -> str | None:
    """What a Layby server that listens there says of its health; None if there is none."""
    # Here and not above: most runs find a free port.
    import httpx

    from studio.server.layers import REQUEST_ID_HEADER

    host = f"[{server.host}]" if ":" in server.host else server.host
    try:
        # trust_env: a proxy of the environment is not for this machine.
        answer = httpx.get(
            f"http://{host}:{server.port}/health", timeout=_HEALTH_TIMEOUT_S, trust_env=False
        )
        state = answer.json()["status"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None
    # Other servers have a status as well, but do not number their answers.
    return str(state) if REQUEST_ID_HEADER in answer.headers else None


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
