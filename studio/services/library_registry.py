"""The library's own notes, a small JSON file in its folder: what was linked, what it fetched itself.

Blocking, any thread. Written whole; of two programs that write at once, the last one wins.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import LibraryError
from studio.services.safe_file import set_aside, write_atomically

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LibraryRegistry:
    """What the disk alone does not tell about the library."""

    links: list[Path] = field(default_factory=list)
    """Models elsewhere, in the order they were added."""
    fetched: list[str] = field(default_factory=list)
    """Names of files in the folder that the library itself fetched, and so may delete."""
    names: dict[str, str] = field(default_factory=dict)
    """What the user calls a model, by its path."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of downloaded files by their names, as their source promised them."""


def read_registry(path: Path) -> LibraryRegistry:
    """The notes at `path`; empty if there are none. A broken file is set aside, with a log line."""
    try:
        data = json.loads(path.read_text("utf-8"))
        return LibraryRegistry(
            links=[Path(link) for link in data["links"]],
            fetched=[str(name) for name in data["fetched"]],
            names={str(path): str(name) for path, name in data.get("names", {}).items()},
            hashes={str(name): str(sha) for name, sha in data.get("hashes", {}).items()},
        )
    except FileNotFoundError:
        return LibraryRegistry()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("the library's notes were broken (%s), kept as %s", error, set_aside(path))
        return LibraryRegistry()
    except OSError as error:
        raise LibraryError(f"{path} cannot be read: {system_fault(error)}") from error


def write_registry(path: Path, registry: LibraryRegistry) -> None:
    """Replace the notes at `path`. Raises LibraryError if that fails."""
    data = {
        "links": [str(link) for link in registry.links],
        "fetched": registry.fetched,
        "names": registry.names,
        "hashes": registry.hashes,
    }
    try:
        write_atomically(path, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        raise LibraryError(f"{path} cannot be written: {system_fault(error)}") from error
