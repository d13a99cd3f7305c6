"""`layby models …`: the library on the command line. Answers go to standard output, progress to standard error."""

from __future__ import annotations

import json
import sys
import threading

from engine.errors import ModelError
from studio.cli.parser import Command, Options
from studio.models.engine_state import FetchProgress
from studio.models.errors import LibraryError
from studio.models.model_library import FileHash, ModelEntry, ModelSource
from studio.services.model_fetcher import ModelFetcher
from studio.services.model_library_service import ModelLibraryService

_WORDS_FOR_YES = frozenset({"y", "yes"})


class ModelsCommand:
    """One method for each command; each returns the exit code."""

    def __init__(self, library: ModelLibraryService, fetcher: ModelFetcher) -> None:
        self._library = library
        self._fetcher = fetcher

    def run(self, options: Options) -> int:
        """Raises EngineError or StudioError, which the entry turns into one line."""
        match options.command:
            case Command.MODELS_LIST:
                return self._list_as_json() if options.as_json else self._list()
            case Command.MODELS_GET:
                return self._get(options.name)
            case Command.MODELS_ADD:
                entry = self._library.add(options.path)
                return _say(f"{entry.name} is in the library, from {entry.path}")
            case Command.MODELS_REMOVE:
                return self._remove(options.name, is_sure=options.is_sure)
            case Command.MODELS_VERIFY:
                return self._verify(options.name)
            case _:
                raise ValueError(f"{options.command} is no command of the library")

    def _list(self) -> int:
        entries = self._library.entries()
        width = max((len(entry.name) for entry in entries), default=0)
        for entry in entries:
            size = "not there" if entry.is_missing else _megabytes(entry.size_bytes)
            _say(f"{entry.name:<{width}}  {size:>10}  {entry.source.value:<7}  {entry.path}")
        if not entries:
            _say("The library is empty.")
        here = {entry.name for entry in entries if not entry.is_missing}
        for offer in self._library.catalog:
            if offer.name not in here:
                _say(
                    f"To fetch: layby models get {offer.name}  "
                    f"({offer.title}, {offer.license}, {_megabytes(offer.size_bytes)})"
                )
        return 0

    def _list_as_json(self) -> int:
        return _say(json.dumps([_as_record(entry) for entry in self._library.entries()], indent=2))

    def _get(self, name: str) -> int:
        try:
            entry = self._fetcher.fetch(
                name, on_progress=_show_progress, cancelled=threading.Event()
            )
        finally:
            _clear_progress()
        return _say(f"{entry.name} is in the library: {entry.path}")

    def _remove(self, name: str, *, is_sure: bool) -> int:
        entry = self._library.get(name)
        has_file = entry.source is ModelSource.FETCHED and not entry.is_missing
        if has_file and not (is_sure or _confirm(f"Delete {entry.path}?")):
            _say(f"{entry.name} is still in the library")
            return 1
        self._library.remove(entry.name)
        is_linked = entry.source is ModelSource.LINKED
        what = "deleted" if has_file else "forgotten; its files stay" if is_linked else "forgotten"
        return _say(f"{entry.name} is {what}")

    def _verify(self, name: str) -> int:
        names = (
            [name]
            if name
            else [entry.name for entry in self._library.entries() if not entry.is_missing]
        )
        return max((self._verify_one(self._library.get(each)) for each in names), default=0)

    def _verify_one(self, entry: ModelEntry) -> int:
        try:
            hashes = self._library.verify(entry.name)
        except (ModelError, LibraryError) as error:
            _say(f"{'WRONG':<8} {entry.name}  {error}")
            return 1
        for found in hashes:
            _say(f"{_verdict(found):<8} {entry.name}  {found.path.name}  sha256 {found.sha256}")
        return 1 if any(found.is_wrong for found in hashes) else 0


def _say(line: str) -> int:
    sys.stdout.write(f"{line}\n")
    return 0


def _verdict(found: FileHash) -> str:
    if found.expected is None:
        return "sound"  # nobody said what it should be, but the engine can read it
    return "WRONG" if found.is_wrong else "ok"


def _as_record(entry: ModelEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "path": str(entry.path),
        "size_bytes": entry.size_bytes,
        "sha256": entry.sha256,
        "source": entry.source.value,
        "is_missing": entry.is_missing,
    }


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.0f} MB"


def _show_progress(progress: FetchProgress) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"\r{progress.name}: {progress.share:4.0%} of {_megabytes(progress.total_bytes)} "
        )
        sys.stderr.flush()


def _clear_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{'':<60}\r")


def _confirm(question: str) -> bool:
    """The user's answer. Raises LibraryError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise LibraryError("removing deletes a file and nobody can be asked here; say --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in _WORDS_FOR_YES
