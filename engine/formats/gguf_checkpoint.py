"""A GGUF model as a `Checkpoint`: one file, or the files of a split one taken together.

Used by the thread that opened it. No torch.
Source of the names and keys of split files: llama.cpp's gguf-split.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from engine.errors import CorruptModel, ModelNotFound
from engine.formats.base import Checkpoint, FileFormat, Place, TensorInfo
from engine.formats.gguf import GgufFile, read_gguf_file
from engine.formats.mapped_file import DAMAGED, shorten

_SHARD_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


def first_shard_name(path: Path) -> str:
    """The same for all files of one split model, going by their names; else the file's own name."""
    match = _SHARD_NAME.fullmatch(path.name)
    return f"{match['stem']}-00001-of-{match['count']}.gguf" if match else path.name


def _shard_paths(path: Path) -> tuple[Path, ...]:
    """The files that the name of `path` says belong together; none if it says nothing."""
    match = _SHARD_NAME.fullmatch(path.name)
    if not match:
        return ()
    names = (
        f"{match['stem']}-{i:05}-of-{match['count']}.gguf"
        for i in range(1, int(match["count"]) + 1)
    )
    return tuple(path.with_name(name) for name in names)


def _read_shards(path: Path, files: contextlib.ExitStack) -> tuple[GgufFile, ...]:
    """The file and, where it is one of a split model, its siblings, in order and in agreement."""

    def read(shard: Path) -> GgufFile:
        part = read_gguf_file(shard)
        files.callback(part.file.close)
        return part

    given = read(path)
    count = given.integer("split.count") if "split.count" in given.metadata else 1
    if count <= 1:
        return (given,)
    paths = _shard_paths(path)
    if len(paths) != count or path not in paths:
        raise CorruptModel(
            f"{path.name}: is one of {count} files (split.count), its name does not say so; "
            f"name them NAME-00001-of-{count:05}.gguf and so on"
        )
    missing = [shard.name for shard in paths if not shard.is_file()]
    if missing:
        raise ModelNotFound(
            f"{path.name}: {len(missing)} of {count} files are missing beside it, the first is {missing[0]}; "
            "download all of them into one folder"
        )
    parts = tuple(given if shard == path else read(shard) for shard in paths)
    _check_shards(parts)
    return parts


def _check_shards(parts: tuple[GgufFile, ...]) -> None:
    num_tensors = sum(len(part.tensors) for part in parts)
    for number, part in enumerate(parts):
        for key, expected in (
            ("split.no", number),
            ("split.count", len(parts)),
            ("split.tensors.count", num_tensors),
        ):
            if part.integer(key) != expected:
                raise CorruptModel(
                    f"{part.name}: {key} is {part.integer(key)}, beside the other files it must be {expected}; "
                    "they do not belong together, download them again"
                )


def open_gguf(path: Path) -> Checkpoint:
    """Open a GGUF model; `path` may be any file of a split one.

    Raises ModelNotFound, CorruptModel, UnsupportedModel, OSError.
    """
    with contextlib.ExitStack() as files:
        parts = _read_shards(path, files)
        tensors: dict[str, TensorInfo] = {}
        places: dict[str, Place] = {}
        for part in parts:
            twice = tensors.keys() & part.tensors.keys()
            if twice:
                raise CorruptModel(
                    f"{part.name}: tensor {shorten(min(twice))} is in another file too; {DAMAGED}"
                )
            tensors |= part.tensors
            places |= part.places
        architecture = parts[0].text("general.architecture")
        if not architecture:
            raise CorruptModel(f"{parts[0].name}: general.architecture is missing; {DAMAGED}")
        checkpoint = Checkpoint(
            path=parts[0].file.path,
            format=FileFormat.GGUF,
            architecture=architecture,
            metadata=parts[0].metadata,
            tensors=tensors,
            places=places,
            files=tuple(part.file for part in parts),
            chat_template=parts[0].text("tokenizer.chat_template"),
        )
        files.pop_all()
        return checkpoint
