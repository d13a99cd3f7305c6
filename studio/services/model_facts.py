"""The facts of every model, read once for each state of its file and kept in a small file of the cache folder.

Blocking; used by one thread at a time. A changed size or time of change makes a file be read anew.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.api import ModelInfo
from engine.errors import EngineError
from studio.models.model_library import ModelFacts
from studio.services.model_library_service import InspectModel
from studio.services.safe_file import write_atomically

_log = logging.getLogger(__name__)

_FORMAT = 2


class ModelFactsReader:
    """`read` is cheap for what has been read before."""

    def __init__(self, inspect: InspectModel, cache_file: Path) -> None:
        self._inspect = inspect
        self._cache_file = cache_file
        self._known: dict[str, tuple[str, ModelFacts]] | None = None

    def read(self, models: Iterable[tuple[str, Path]]) -> dict[Path, ModelFacts]:
        """The facts of each (name, path) that is there."""
        known = self._known if self._known is not None else self._load()
        self._known = known
        facts: dict[Path, ModelFacts] = {}
        has_news = False
        for name, path in models:
            try:
                stamp = _stamp(path)
            except OSError:
                continue
            old = known.get(str(path))
            if old is None or old[0] != stamp:
                known[str(path)] = old = (stamp, self._look(name, path))
                has_news = True
            facts[path] = old[1]
        if has_news:
            self._save(known)
        return facts

    def _look(self, name: str, path: Path) -> ModelFacts:
        try:
            return ModelFacts(info=self._inspect(path, name))
        except EngineError as error:
            return ModelFacts(info=None, problem=str(error))

    def _load(self) -> dict[str, tuple[str, ModelFacts]]:
        try:
            data = json.loads(self._cache_file.read_text("utf-8"))
            if data["format"] != _FORMAT:
                return {}
            return {
                path: (record["stamp"], _facts_of(record))
                for path, record in data["models"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}  # a cache: read anew

    def _save(self, known: dict[str, tuple[str, ModelFacts]]) -> None:
        models = {path: _record_of(stamp, facts) for path, (stamp, facts) in known.items()}
        try:
            text = json.dumps({"format": _FORMAT, "models": models})
            write_atomically(self._cache_file, text.encode())
        except OSError as error:
            _log.info("the facts of models cannot be kept: %s", error)


def _stamp(path: Path) -> str:
    """Changes when the file does; of a folder that of its newest part, as far as its own entry tells."""
    stat = path.stat()
    return f"{stat.st_size}-{stat.st_mtime_ns}"


def _record_of(stamp: str, facts: ModelFacts) -> dict[str, Any]:
    info = facts.info
    record = None if info is None else {**asdict(info), "path": str(info.path)}
    return {"stamp": stamp, "info": record, "problem": facts.problem}


def _facts_of(record: dict[str, Any]) -> ModelFacts:
    info = record["info"]
    if info is not None:
        info = ModelInfo(**{**info, "path": Path(info["path"])})
    return ModelFacts(info=info, problem=str(record["problem"]))
