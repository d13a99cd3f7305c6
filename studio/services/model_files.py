"""What counts as a model on disk: one GGUF file, the first of a split one, or a folder with config.json.

Looks at names and sizes only; whether a file is sound, the engine judges. Blocking, any thread.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from studio.models.errors import LibraryError

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_HASH_CHUNK_BYTES = 1 << 20


def check_is_first_part(path: Path) -> None:
    """Raises LibraryError if `path` is a later part of a split model: its first one stands for all."""
    shard = _SHARD.search(path.stem)
    if shard is not None and int(shard[1]) != 1:
        raise LibraryError(f"{path} is part {int(shard[1])} of a split model; give its first part")


def is_whole_name(file_name: str) -> bool:
    """Whether a file of that name stands for a model: a GGUF file, of a split one the first part."""
    path = Path(file_name)
    shard = _SHARD.search(path.stem)
    return path.suffix.lower() == ".gguf" and (shard is None or int(shard[1]) == 1)


def models_in(folder: Path) -> list[Path]:
    """The models that lie directly in `folder`, by name; none if it does not exist."""
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".")
        and (
            (is_whole_name(path.name) and path.is_file())
            or (path.is_dir() and (path / "config.json").is_file())
        )
    )


def files_of(model: Path) -> list[Path]:
    """All files of a model: the file, all parts of a split one, or everything in its folder."""
    if model.is_dir():
        return sorted(path for path in model.iterdir() if path.is_file())
    shard = _SHARD.search(model.stem)
    if shard is None:
        return [model]
    start = model.stem[: shard.start()]
    return sorted(model.parent.glob(f"{_escape_glob(start)}-?????-of-{shard[2]}{model.suffix}"))


def size_of(model: Path) -> int:
    """Bytes of all files of a model."""
    return sum(path.stat().st_size for path in files_of(model))


def plain_name(model: Path) -> str:
    """What a model is called, there or not: its name without `.gguf` and part number."""
    return _SHARD.sub("", model.stem) if model.suffix.lower() == ".gguf" else model.name


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _escape_glob(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
