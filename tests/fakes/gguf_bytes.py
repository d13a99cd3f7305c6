"""GGUF files as plain parts, taken apart and put together without any check: for files that lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B",
         U64: "Q", I64: "q", F64: "d"}  # fmt: skip


def text(value: str | bytes) -> bytes:
    """A string value: its length and its bytes."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def number(kind: int, value: float) -> bytes:
    """A value of one of the number types."""
    return struct.pack("<" + CODES[kind], value)


def array(kind: int, items: list[bytes], count: int | None = None) -> bytes:
    """An array value of encoded items; `count` may differ from how many there are."""
    return struct.pack("<IQ", kind, len(items) if count is None else count) + b"".join(items)


@dataclass(slots=True)
class RawKey:
    """One metadata entry; `value` is encoded."""

    name: bytes
    kind: int
    value: bytes


@dataclass(slots=True)
class RawTensor:
    """One entry of the tensor table; dimensions as the file has them, fastest first."""

    name: bytes
    dimensions: list[int]
    kind: int = 0
    offset: int = 0


@dataclass(slots=True)
class RawGguf:
    """A file's parts. The counts are those of the lists unless given."""

    ALIGNMENT: ClassVar[int] = 32

    keys: list[RawKey] = field(default_factory=list)
    tensors: list[RawTensor] = field(default_factory=list)
    data: bytes = b""
    version: int = 3
    num_keys: int | None = None
    num_tensors: int | None = None

    def build(self) -> bytes:
        """The bytes of the file."""
        num_tensors = len(self.tensors) if self.num_tensors is None else self.num_tensors
        num_keys = len(self.keys) if self.num_keys is None else self.num_keys
        parts = [b"GGUF", struct.pack("<IQQ", self.version, num_tensors, num_keys)]
        for key in self.keys:
            parts += [text(key.name), struct.pack("<I", key.kind), key.value]
        for tensor in self.tensors:
            sizes = struct.pack(
                f"<I{len(tensor.dimensions)}Q", len(tensor.dimensions), *tensor.dimensions
            )
            parts += [text(tensor.name), sizes, struct.pack("<IQ", tensor.kind, tensor.offset)]
        header = b"".join(parts)
        if not self.data:
            return header
        return header + bytes(-len(header) % self.ALIGNMENT) + self.data

    @classmethod
    def parse(cls, data: bytes) -> RawGguf:
        """Take a sound file apart."""
        version, num_tensors, num_keys = struct.unpack_from("<IQQ", data, 4)
        raw, position = cls(version=version), 24
        for _ in range(num_keys):
            name, position = _parse_text(data, position)
            (kind,) = struct.unpack_from("<I", data, position)
            end = _skip_value(data, position + 4, kind)
            raw.keys.append(RawKey(name, kind, data[position + 4 : end]))
            position = end
        for _ in range(num_tensors):
            name, position = _parse_text(data, position)
            (num_dimensions,) = struct.unpack_from("<I", data, position)
            layout = struct.Struct(f"<{num_dimensions}QIQ")
            *dimensions, kind, offset = layout.unpack_from(data, position + 4)
            position += 4 + layout.size
            raw.tensors.append(RawTensor(name, dimensions, kind, offset))
        raw.data = data[position + -position % cls.ALIGNMENT :]
        return raw

    def key(self, name: str) -> RawKey:
        """The entry of that name; raises StopIteration when there is none."""
        return next(key for key in self.keys if key.name == name.encode())


def _parse_text(data: bytes, position: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<Q", data, position)
    return data[position + 8 : position + 8 + length], position + 8 + length


def _skip_value(data: bytes, position: int, kind: int) -> int:
    if kind == STRING:
        return _parse_text(data, position)[1]
    if kind != ARRAY:
        return position + struct.calcsize(CODES[kind])
    inner, count = struct.unpack_from("<IQ", data, position)
    position += 12
    for _ in range(count):
        position = _skip_value(data, position, inner)
    return position
