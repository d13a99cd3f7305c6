"""The model library: a folder of model files, and paths added from elsewhere.

Blocking functions, used by the command line as they are and by `ModelService` through a thread.
What is in the library follows from the disk at each call; nothing is cached. Whether a model is sound, the engine's
own look at its files says (`InspectModel`). No Qt, no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.api import ModelInfo
from engine.errors import ModelNotFound
from engine.system_faults import system_fault
from studio.models.errors import LibraryError
from studio.models.model_library import CatalogEntry, FileHash, ModelEntry, ModelSource
from studio.models.one_line import one_line
from studio.services.library_registry import LibraryRegistry, read_registry, write_registry
from studio.services.model_files import (
    check_is_first_part,
    files_of,
    is_whole_name,
    models_in,
    plain_name,
    sha256_of,
    size_of,
)

MOST_NAME_CHARS = 80

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
        """Every model: those in the folder by name, links in the order they were added, then what was fetched and is
        not there any more."""
        registry = read_registry(self._registry_file)
        return tuple(_with_own_names(self._unnamed_entries(registry)))

    def outside(
        self, paths: Iterable[Path], entries: Iterable[ModelEntry]
    ) -> tuple[ModelEntry, ...]:
        """Entries for models at these paths, as far as `entries` do not have them; loaded by their path, their name."""
        own = {entry.path for entry in entries}
        return tuple(
            ModelEntry(
                name=str(path),
                path=path,
                size_bytes=size_of(path) if path.exists() else 0,
                sha256=None,
                source=ModelSource.OUTSIDE,
                is_missing=not path.exists(),
            )
            for path in dict.fromkeys(paths)
            if path not in own
        )

    def get(self, name: str) -> ModelEntry:
        """The entry of that name, also in other case.

        Raises ModelNotFound, with the names there are.
        """
        entries = self.entries()
        for entry in entries:
            if entry.name.casefold() == name.casefold():
                return entry
        raise self._unknown(name, entries)

    def resolve(self, model: str) -> Path:
        """The absolute path of a library name, or of a path. Raises ModelNotFound otherwise."""
        try:
            entry = self.get(model)
        except ModelNotFound:
            path = Path(model).expanduser()
            if model and path.exists():
                return path.absolute()
            if path.is_absolute():
                raise ModelNotFound(
                    f"there is no file {path}; put it back if it was moved, or choose another model"
                ) from None
            raise
        if entry.is_missing:
            raise ModelNotFound(
                f"the file of the model {entry.name} is missing: {entry.path}; put it back, say where it lies now, "
                "download it again, or choose another model"
            )
        return entry.path

    def look_at(self, model: str) -> ModelInfo:
        """The facts of a library's model, or of one at a path, by the library's name. Raises ModelError."""
        path = self.resolve(model)
        return self._inspect(path, self.name_of(path))

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

    def add(self, path: Path, name: str = "") -> ModelEntry:
        """Remember a model elsewhere on disk, without copying it; again is no error. `name` "": after its file.

        Raises ModelError if it is no sound model, LibraryError if it is a later part of one.
        """
        path = path.expanduser().absolute()
        check_is_first_part(path)
        self._inspect(path, plain_name(path))
        registry = read_registry(self._registry_file)
        if path not in registry.links and path not in models_in(self.folder):
            registry.links.append(path)
            if name:
                registry.names[str(path)] = name
            write_registry(self._registry_file, registry)
        return next(entry for entry in self.entries() if entry.path == path)

    def rename(self, name: str, new_name: str) -> ModelEntry:
        """Call a model otherwise, in the window and over the API; its file keeps its name.

        Raises ModelNotFound for an unknown name, LibraryError for a new one that is empty, too long or taken.
        """
        entry, new_name = self.get(name), one_line(new_name)
        if not 1 <= len(new_name) <= MOST_NAME_CHARS:
            raise LibraryError(
                f"the name has {len(new_name)} characters; give 1 to {MOST_NAME_CHARS}"
            )
        others = {each.name.casefold() for each in self.entries() if each.path != entry.path}
        if new_name.casefold() in others:
            raise LibraryError(f"another model is called {new_name!r} already; take another name")
        registry = read_registry(self._registry_file)
        registry.names[str(entry.path)] = new_name
        write_registry(self._registry_file, registry)
        return self.get(new_name)

    def relocate(self, name: str, path: Path) -> ModelEntry:
        """Say where a linked model lies now, or a fetched one that is missing; its name stays.

        Raises ModelNotFound for an unknown name, ModelError for what is no sound model, LibraryError for a model that
        lies in the library's folder or a place that is in the library already.
        """
        entry, path = self.get(name), path.expanduser().absolute()
        if entry.source is not ModelSource.LINKED and not entry.is_missing:
            raise LibraryError(
                f"{entry.name} lies in the library's own folder; only links can move"
            )
        check_is_first_part(path)
        self._inspect(path, entry.name)
        registry = read_registry(self._registry_file)
        if path in registry.links or path in models_in(self.folder):
            raise LibraryError(f"{path} is in the library already; remove {entry.name} instead")
        if entry.source is ModelSource.LINKED:
            registry.links[registry.links.index(entry.path)] = path
        else:
            _forget_files(registry, entry)
            registry.links.append(path)
        registry.names.pop(str(entry.path), None)
        registry.names[str(path)] = entry.name
        write_registry(self._registry_file, registry)
        return self.get(entry.name)

    def owns(self, file_name: str) -> bool:
        """Whether the library itself fetched the file of that name, and so may replace it."""
        return file_name in read_registry(self._registry_file).fetched

    def record_fetched(self, entry: CatalogEntry) -> ModelEntry:
        """Remember that the library itself fetched this file, so that it may delete it."""
        self.record_files({entry.file_name: entry.sha256})
        path = self.folder / entry.file_name
        return next(one for one in self.entries() if one.path == path)  # it may be called otherwise

    def record_files(self, hashes: Mapping[str, str | None]) -> None:
        """Remember that the library itself brought these files, and the SHA-256 each was promised to have."""
        registry = read_registry(self._registry_file)
        for file_name, sha256 in hashes.items():
            if file_name not in registry.fetched:
                registry.fetched.append(file_name)
            if sha256 is not None:
                registry.hashes[file_name] = sha256
        write_registry(self._registry_file, registry)

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
            _forget_files(registry, entry)
            for path in files_of(entry.path):
                _delete(path)
        registry.names.pop(str(entry.path), None)
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
        hashes = read_registry(self._registry_file).hashes
        if entry.sha256 is None:
            self.inspect(entry)
        try:
            return tuple(
                FileHash(
                    path=path,
                    sha256=sha256_of(path),
                    expected=entry.sha256 if path == entry.path else hashes.get(path.name),
                )
                for path in files_of(self.resolve(entry.name))
            )
        except OSError as error:
            raise LibraryError(f"{error.filename} cannot be read: {system_fault(error)}") from error

    def _unnamed_entries(self, registry: LibraryRegistry) -> Iterator[ModelEntry]:
        for path in models_in(self.folder):
            yield self._in_folder(path, registry)
        for path in registry.links:
            is_missing = not path.exists()
            yield ModelEntry(
                name=registry.names.get(str(path)) or plain_name(path),
                path=path,
                size_bytes=0 if is_missing else size_of(path),
                sha256=None,
                source=ModelSource.LINKED,
                is_missing=is_missing,
            )
        for path in (self.folder / name for name in registry.fetched if is_whole_name(name)):
            if not path.exists():
                yield self._in_folder(path, registry)

    def _in_folder(self, path: Path, registry: LibraryRegistry) -> ModelEntry:
        known = next((entry for entry in self.catalog if entry.file_name == path.name), None)
        is_missing = not path.exists()
        return ModelEntry(
            name=registry.names.get(str(path)) or (known.name if known else plain_name(path)),
            path=path,
            size_bytes=0 if is_missing else size_of(path),
            sha256=known.sha256 if known else registry.hashes.get(path.name),
            source=ModelSource.FETCHED if path.name in registry.fetched else ModelSource.FOUND,
            is_missing=is_missing,
        )

    def _unknown(self, name: str, entries: tuple[ModelEntry, ...]) -> ModelNotFound:
        names = ", ".join(entry.name for entry in entries) or "nothing yet"
        if any(entry.name.casefold() == name.casefold() for entry in self.catalog):
            return ModelNotFound(f"the model {name} has not been downloaded yet; download it first")
        return ModelNotFound(
            f"there is no model {name!r}: no such path, and the library has {names}; "
            "add its file or folder to the library"
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


def _forget_files(registry: LibraryRegistry, entry: ModelEntry) -> None:
    """The library has brought no file of this model."""
    for name in {entry.path.name, *(path.name for path in files_of(entry.path))}:
        registry.hashes.pop(name, None)
        if name in registry.fetched:
            registry.fetched.remove(name)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise LibraryError(f"{path} cannot be deleted: {system_fault(error)}") from error
