"""Reads the header of one GGUF file: its metadata and the table of its tensors.

Every size in the file is checked before it is used: a damaged or hostile file gives one clear error
and costs neither time nor memory. Used by the thread that opens the file. No torch.
Source of the layout: the GGUF specification, versions 2 and 3 (ggml, docs/gguf.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import Place, TensorInfo
from engine.formats.gguf_values import MAX_NAME_BYTES, HeaderCursor
from engine.formats.mapped_file import DAMAGED, MappedFile, shorten
from kernels.quant import BLOCK_FORMATS

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEYS = 65_536
MAX_TENSORS = 65_536
MAX_DIMENSIONS = 4
MAX_ALIGNMENT = 1 << 20
DEFAULT_ALIGNMENT = 32

_MIN_KEY_BYTES = 8 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class GgufFile:
    """One parsed file; `places` has the same names as `tensors`."""

    file: MappedFile
    metadata: Mapping[str, object]
    tensors: Mapping[str, TensorInfo]
    places: Mapping[str, Place]

    @property
    def name(self) -> str:
        return self.file.path.name

    def integer(self, key: str) -> int:
        """The value of a key that must be an integer; raises CorruptModel."""
        value = self.metadata.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise CorruptModel(
                f"{self.name}: {key} must be an integer, it is {shorten(value)}; {DAMAGED}"
            )
        return value

    def text(self, key: str) -> str | None:
        """The value of a key that must be a string where it is there; raises CorruptModel."""
        value = self.metadata.get(key)
        if value is not None and not isinstance(value, str):
            raise CorruptModel(
                f"{self.name}: {key} must be a string, it is {shorten(value)}; {DAMAGED}"
            )
        return value


def read_gguf_file(path: Path) -> GgufFile:
    """Parse the header of one file. Raises ModelNotFound, CorruptModel, UnsupportedModel, OSError."""
    file = MappedFile(path)
    try:
        cursor = HeaderCursor(file)
        num_tensors, num_keys = _read_counts(file, cursor)
        metadata = _read_metadata(cursor, num_keys)
        infos = [_read_tensor_info(cursor) for _ in range(num_tensors)]
        tensors, places = _place_tensors(file, cursor, infos, _alignment(cursor, metadata))
    except BaseException:
        file.close()
        raise
    return GgufFile(file, metadata, tensors, places)


def _read_counts(file: MappedFile, cursor: HeaderCursor) -> tuple[int, int]:
    magic = file.data[:4]
    if magic != MAGIC:
        raise CorruptModel(
            f"{file.path.name}: is no GGUF file: it begins with {bytes(magic).hex(' ') or 'nothing'}, "
            f"a GGUF file with {MAGIC.hex(' ')} (GGUF)"
        )
    cursor.take(4, "magic")
    version = cursor.number("I", "version")
    if version and not version & 0xFFFF:
        raise UnsupportedModel(
            f"{file.path.name}: is a big-endian GGUF file; get the little-endian one"
        )
    if version not in VERSIONS:
        raise UnsupportedModel(
            f"{file.path.name}: GGUF version {version}, versions {VERSIONS} can be read; get a newer conversion"
        )
    num_tensors = cursor.count("number of tensors", limit=MAX_TENSORS, item_bytes=_MIN_TENSOR_BYTES)
    num_keys = cursor.count("number of metadata keys", limit=MAX_KEYS, item_bytes=_MIN_KEY_BYTES)
    return num_tensors, num_keys


def _read_metadata(cursor: HeaderCursor, num_keys: int) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for index in range(num_keys):
        key = cursor.string(f"metadata key {index}", limit=MAX_NAME_BYTES)
        if key in metadata:
            raise cursor.corrupt(shorten(key), "stands twice")
        metadata[key] = cursor.value(shorten(key))
    return metadata


def _alignment(cursor: HeaderCursor, metadata: Mapping[str, object]) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(value) is not int or not 0 < value <= MAX_ALIGNMENT or value & (value - 1):
        raise cursor.corrupt(
            "general.alignment",
            f"is {shorten(value)}, it must be a power of two up to {MAX_ALIGNMENT}",
        )
    return value


def _read_tensor_info(cursor: HeaderCursor) -> tuple[TensorInfo, int]:
    """One entry of the table: what it is, and its offset from the start of the data."""
    name = cursor.string("tensor name", limit=MAX_NAME_BYTES)
    where = f"tensor {shorten(name)}"
    num_dimensions = cursor.number("I", f"{where} number of dimensions")
    if not 1 <= num_dimensions <= MAX_DIMENSIONS:
        raise cursor.corrupt(
            where, f"has {num_dimensions} dimensions, allowed are 1 to {MAX_DIMENSIONS}"
        )
    dimensions = [cursor.number("Q", f"{where} dimension {i}") for i in range(num_dimensions)]
    storage = _storage(cursor.number("I", f"{where} type"), f"{cursor.file_name}: {where}")
    offset = cursor.number("Q", f"{where} offset")
    shape = tuple(reversed(dimensions))  # the file has the fastest dimension first
    if not all(shape):
        raise cursor.corrupt(where, f"has a dimension of 0 in its shape {shape}")
    form = BLOCK_FORMATS[storage]
    if shape[-1] % form.block_values:
        raise cursor.corrupt(
            where,
            f"has rows of {shape[-1]} values, {storage} stores them in blocks of {form.block_values}",
        )
    return TensorInfo(name, shape, storage, form.num_bytes(shape)), offset


def _storage(type_id: int, where: str) -> str:
    try:
        name = gguf.GGMLQuantizationType(type_id).name
    except ValueError:
        name = f"unknown type {type_id}"
    if name not in BLOCK_FORMATS:
        raise UnsupportedModel(
            f"{where} is stored as {name}, which cannot be read; get a version of the model in one of "
            + ", ".join(BLOCK_FORMATS)
        )
    return name


def _place_tensors(
    file: MappedFile, cursor: HeaderCursor, infos: list[tuple[TensorInfo, int]], alignment: int
) -> tuple[dict[str, TensorInfo], dict[str, Place]]:
    """Check that every tensor lies in the file, aligned, on bytes of its own."""
    data_start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    places: dict[str, Place] = {}
    end = data_start
    for info, offset in sorted(infos, key=lambda item: item[1]):
        where = f"tensor {shorten(info.name)}"
        start = data_start + offset
        if info.name in tensors:
            raise cursor.corrupt(where, "stands twice")
        if offset % alignment:
            raise cursor.corrupt(
                where, f"has offset {offset}, no multiple of the alignment {alignment}"
            )
        if start < end:
            raise cursor.corrupt(
                where, f"starts at {start}, within the tensor before it, which ends at {end}"
            )
        end = start + info.num_bytes
        if end > file.size:
            raise cursor.corrupt(where, f"ends at {end}, the file at {file.size} bytes")
        tensors[info.name] = info
        places[info.name] = Place(file, start)
    return tensors, places
