"""Finds the models that LM Studio, Ollama and Hugging Face's tools keep on this computer. Blocking; any thread.

Only names, manifests and sizes are read, nothing is written. What cannot be read is passed over: it is others' data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from studio.models.errors import LibraryError
from studio.models.model_library import Finder, FoundModel
from studio.paths import ModelCaches
from studio.services.model_files import check_is_first_part, models_in, plain_name, size_of

_MOST_MANIFEST_BYTES = 1 << 20
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DEEPEST = 4
"""Folders below LM Studio's that are looked into: publisher, model, and one for luck."""


def find_models(caches: ModelCaches) -> tuple[FoundModel, ...]:
    """Every whole model in those folders, by program and name; each place once."""
    found: dict[Path, FoundModel] = {}
    for folder in caches.lm_studio:
        _collect(found, _in_folders(folder), Finder.LM_STUDIO)
    for folder in caches.ollama:
        _collect(found, _in_ollama(folder), Finder.OLLAMA)
    for folder in caches.hugging_face:
        _collect(found, _in_hub(folder), Finder.HUGGING_FACE)
    return tuple(found.values())


def models_below(folder: Path) -> tuple[Path, ...]:
    """Every model in a folder of the user's, or the folder itself where it is one."""
    if (folder / "config.json").is_file():
        return (folder,)
    return tuple(path for _, path in sorted(_in_folders(folder)))


def _collect(
    found: dict[Path, FoundModel], models: Iterator[tuple[str, Path]], finder: Finder
) -> None:
    for name, path in sorted(models, key=lambda each: each[0].casefold()):
        try:
            check_is_first_part(path)
            size_bytes = size_of(path)
        except (OSError, LibraryError):
            continue
        if size_bytes:
            model = FoundModel(name=name, path=path, size_bytes=size_bytes, finder=finder)
            found.setdefault(path, model)


def _in_folders(folder: Path, depth: int = 0) -> Iterator[tuple[str, Path]]:
    """GGUF files, and folders with a config.json, at any depth that makes sense."""
    try:
        models = [path for path in models_in(folder) if not _is_companion(path)]
        folders = [
            path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
        ]
    except OSError:
        return
    yield from ((plain_name(path), path) for path in models)
    if depth < _DEEPEST:
        for each in folders:
            if each not in models:
                yield from _in_folders(each, depth + 1)


def _in_ollama(folder: Path) -> Iterator[tuple[str, Path]]:
    """The blob that each manifest names as its model, called NAME-TAG as Ollama calls it NAME:TAG."""
    manifests = folder / "manifests"
    try:
        files = [path for path in manifests.rglob("*") if path.is_file()]
    except OSError:
        return
    for manifest in files:
        digest = _model_digest(manifest)
        blob = folder / "blobs" / digest.replace(":", "-")
        if digest and blob.is_file():
            yield f"{manifest.parent.name}-{manifest.name}", blob


def _model_digest(manifest: Path) -> str:
    """Empty for what is no manifest of a model."""
    try:
        if manifest.stat().st_size > _MOST_MANIFEST_BYTES:
            return ""
        layers = json.loads(manifest.read_text("utf-8"))["layers"]
        digests = [layer["digest"] for layer in layers if layer.get("mediaType") == _OLLAMA_MODEL]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    is_one = len(digests) == 1 and isinstance(digests[0], str)
    return digests[0] if is_one and _DIGEST.fullmatch(digests[0]) else ""


def _in_hub(folder: Path) -> Iterator[tuple[str, Path]]:
    """The models of each repository's newest snapshot: GGUF files, or the folder where it has safetensors."""
    for repository in _folders(folder, "models--*"):
        snapshots = _folders(repository / "snapshots", "*")
        if not snapshots:
            continue
        newest = max(snapshots, key=lambda path: path.stat().st_mtime)
        name = repository.name.split("--")[-1]
        if (newest / "config.json").is_file() and any(newest.glob("*.safetensors")):
            yield name, newest
        yield from ((model, path) for model, path in _in_folders(newest, _DEEPEST - 1))


def _folders(folder: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in folder.glob(pattern) if path.is_dir()]
    except OSError:
        return []


def _is_companion(path: Path) -> bool:
    """The part of a model that sees, which other programs keep beside it; it writes nothing by itself."""
    return "mmproj" in path.name.lower()
