"""The model library: a folder of model files, and paths added from elsewhere.

Blocking functions, used by the command line as they are and by `ModelService` through a thread.
What is in the library follows from the disk at each call; nothing is cached. Whether a model is sound, the engine's
own look at its files says (`InspectModel`). No Qt, no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from engine.api import ModelInfo
from engine.errors import ModelNotFound
from studio.models.errors import LibraryError
from studio.models.model_library import CatalogEntry, FileHash, ModelEntry, ModelSource
from studio.services.library_registry import LibraryRegistry, read_registry, write_registry
from studio.services.model_files import (
    check_is_first_part,
    files_of,
    models_in,
    plain_name,
    sha256_of,
    size_of,
)

InspectModel = Callable[[Path, str], ModelInfo]
"""Reads the facts of a model's files without loading them; given by the composition root. Raises ModelError."""


class ModelLibraryService:
    """Entries have names that differ also when case is ignored."""

    def __init__(
        self, folder: Path, catalog: tuple[CatalogEntry, ...], *, inspect: InspectModel
    ) -> None:
        self.folder = folder
        self.catalog = catalog
        self._inspect = inspect
        self._registry_file = folder / "library.json"

    def entries(self) -> tuple[ModelEntry, ...]:
        """Every model: those in the folder by name, then links in the order they were added."""
        registry = read_registry(self._registry_file)
        return tuple(_with_own_names(self._unnamed_entries(registry)))

    def get(self, name: str) -> ModelEntry:
        """The entry of that name, also in other case.

        Raises ModelNotFound, with the names there are.
        """
        entries = self.entries()
        for entry in entries:
            if entry.name.casefold() == name.casefold():
                return entry
        raise ModelNotFound(self._why_unknown(name, entries))

    def resolve(self, model: str) -> Path:
        """The absolute path of a library name, or of a path. Raises ModelNotFound otherwise."""
        try:
            entry = self.get(model)
        except ModelNotFound:
            path = Path(model).expanduser()
            if model and path.exists():
                return path.absolute()
            raise
        if entry.is_missing:
            raise ModelNotFound(
                f"the model {entry.name} was added from {entry.path}, which is not there now; "
                f"bring it back, or forget it with: layby models remove {entry.name}"
            )
        return entry.path

    def name_of(self, path: Path) -> str:
        """The library's name of the model at `path`, or a plain name made from the path."""
        names = (entry.name for entry in self.entries() if entry.path == path)
        return next(names, plain_name(path))

    def catalog_entry(self, name: str) -> CatalogEntry:
        """The model of that name that can be fetched.

        Raises ModelNotFound, with the names there are.
        """
        for entry in self.catalog:
            if entry.name.casefold() == name.casefold():
                return entry
        offered = ", ".join(entry.name for entry in self.catalog)
        raise ModelNotFound(f"no model {name!r} can be fetched; these can: {offered}")

    def add(self, path: Path) -> ModelEntry:
        """Remember a model elsewhere on disk, without copying it; again is no error.

        Raises ModelError if it is no sound model, LibraryError if it is a later part of one.
        """
        path = path.expanduser().absolute()
        check_is_first_part(path)
        self._inspect(path, plain_name(path))
        registry = read_registry(self._registry_file)
        if path not in registry.links and path not in models_in(self.folder):
            registry.links.append(path)
            write_registry(self._registry_file, registry)
        return next(entry for entry in self.entries() if entry.path == path)

    def owns(self, entry: CatalogEntry) -> bool:
        """Whether the library itself fetched the file of that name, and so may replace it."""
        return entry.file_name in read_registry(self._registry_file).fetched

    def record_fetched(self, entry: CatalogEntry) -> ModelEntry:
        """Remember that the library itself fetched this file, so that it may delete it."""
        registry = read_registry(self._registry_file)
        if entry.file_name not in registry.fetched:
            registry.fetched.append(entry.file_name)
            write_registry(self._registry_file, registry)
        return self.get(entry.name)

    def remove(self, name: str) -> ModelEntry:
        """Delete a fetched model's file, or forget a link; returns the entry that was removed.

        Raises ModelNotFound for an unknown name, LibraryError for a file that is not the
        library's own.
        """
        entry = self.get(name)
        registry = read_registry(self._registry_file)
        if entry.source is ModelSource.FOUND:
            raise LibraryError(
                f"{entry.name} was put into the library's folder by hand; "
                f"delete {entry.path} yourself if it is no longer wanted"
            )
        if entry.source is ModelSource.LINKED:
            registry.links.remove(entry.path)
        else:
            _delete(entry.path)
            registry.fetched.remove(entry.path.name)
        write_registry(self._registry_file, registry)
        return entry

    def inspect(self, entry: ModelEntry) -> ModelInfo:
        """The facts of a model, read without its weights. Raises ModelError if its files are not sound."""
        return self._inspect(entry.path, entry.name)

    def verify(self, name: str) -> tuple[FileHash, ...]:
        """Read every file of a model and hash it; where the right hash is not known, inspect the model.

        Raises ModelNotFound for an unknown name, ModelError if it is inspected and not sound, LibraryError if a file
        cannot be read.
        """
        entry = self.get(name)
        if entry.sha256 is None:
            self.inspect(entry)
        try:
            return tuple(
                FileHash(path=path, sha256=sha256_of(path), expected=entry.sha256)
                for path in files_of(self.resolve(entry.name))
            )
        except OSError as error:
            raise LibraryError(f"{error.filename} cannot be read: {error.strerror}") from error

    def _unnamed_entries(self, registry: LibraryRegistry) -> Iterator[ModelEntry]:
        offered = {entry.file_name: entry for entry in self.catalog}
        for path in models_in(self.folder):
            known = offered.get(path.name)
            yield ModelEntry(
                name=known.name if known else plain_name(path),
                path=path,
                size_bytes=size_of(path),
                sha256=known.sha256 if known else None,
                source=ModelSource.FETCHED if path.name in registry.fetched else ModelSource.FOUND,
            )
        for path in registry.links:
            is_missing = not path.exists()
            yield ModelEntry(
                name=plain_name(path),
                path=path,
                size_bytes=0 if is_missing else size_of(path),
                sha256=None,
                source=ModelSource.LINKED,
                is_missing=is_missing,
            )

    def _why_unknown(self, name: str, entries: tuple[ModelEntry, ...]) -> str:
        names = ", ".join(entry.name for entry in entries) or "nothing yet"
        if any(entry.name.casefold() == name.casefold() for entry in self.catalog):
            return f"the model {name} has not been fetched; run: layby models get {name}"
        return (
            f"there is no model {name!r}: no such path, and the library has {names}; "
            "add a file or folder with: layby models add PATH"
        )


def _with_own_names(entries: Iterator[ModelEntry]) -> Iterator[ModelEntry]:
    """The entries, a later one whose name is taken as NAME-2, NAME-3, …"""
    taken: set[str] = set()
    for entry in entries:
        name, number = entry.name, 1
        while name.casefold() in taken:
            number += 1
            name = f"{entry.name}-{number}"
        taken.add(name.casefold())
        yield replace(entry, name=name)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise LibraryError(f"{path} cannot be deleted: {error.strerror}") from error
