"""Reads the header of a GGUF file value by value, believing nothing.

A `HeaderCursor` walks the mapped bytes; each length and count is held against the bytes that are
left before anything is made of it. Arrays stay compact: a vocabulary of 150,000 strings is walked
once and decoded when asked for. Used by the thread that opens the file. No torch.
Source of the layout: the GGUF specification, versions 2 and 3 (ggml, docs/gguf.md).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import overload

from engine.errors import CorruptModel
from engine.formats.mapped_file import DAMAGED, MappedFile

MAX_HEADER_BYTES = 128 << 20
"""Everything before the weights; the largest vocabularies take some 20 MiB."""
MAX_ITEMS = 4 << 20
"""Strings in all arrays together; the largest vocabularies with their merges have under 1 M."""
INNER_ARRAY_ITEMS = 64
"""An array inside an array counts as this many strings: it costs as much time and memory."""
MAX_NESTING = 4
MAX_NAME_BYTES = 65_535

_LENGTH = struct.Struct("<Q")


class ValueType(IntEnum):
    """What a metadata value is, as the file encodes it."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_CODES = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "B",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}
"""Format characters, the same for `struct` and `array`."""


class StringArray(Sequence[str]):
    """Strings as they lie in the file, decoded one by one when asked for.

    Reading one raises CorruptModel, naming the field, when it is not UTF-8.
    """

    __slots__ = ("_field", "_raw", "_starts")

    def __init__(self, field: str, raw: bytes, starts: array[int]) -> None:
        """String i is raw[starts[i] : starts[i + 1] - 8]: each follows its length of 8 bytes."""
        self._field = field
        self._raw = raw
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]  # IndexError, negative indices
        return self._decode(place, self._starts[place], self._starts[place + 1])

    def __iter__(self) -> Iterator[str]:
        for place, (start, following) in enumerate(pairwise(self._starts)):
            yield self._decode(place, start, following)

    def _decode(self, place: int, start: int, following: int) -> str:
        try:
            return self._raw[start : following - _LENGTH.size].decode()
        except UnicodeDecodeError as error:
            raise CorruptModel(f"{self._field}[{place}] is not UTF-8; {DAMAGED}") from error


class HeaderCursor:
    """A position in the header of one file; every method moves it past what it returns.

    `field` names what is read, as it is to stand in a message. Raises CorruptModel on any value that cannot be.
    """

    def __init__(self, file: MappedFile) -> None:
        self.position = 0
        self.file_name = file.path.name
        self._file = file
        self._limit = min(file.size, MAX_HEADER_BYTES)
        self._items_left = MAX_ITEMS

    def corrupt(self, field: str, problem: str) -> CorruptModel:
        """The error to raise about `field`."""
        return CorruptModel(f"{self.file_name}: {field} {problem}; {DAMAGED}")

    def take(self, num_bytes: int, field: str) -> int:
        """Step over `num_bytes`; returns where they start."""
        start = self.position
        if num_bytes > self._limit - start:
            raise self.corrupt(
                field,
                f"needs {num_bytes} bytes at {start}, but the header ends at {self._limit} "
                f"(end of the file, or the limit of {MAX_HEADER_BYTES})",
            )
        self.position = start + num_bytes
        return start

    def number(self, code: str, field: str) -> int:
        """One little-endian integer of that `struct` format."""
        return int(self._scalar(code, field))

    def count(self, field: str, *, limit: int, item_bytes: int) -> int:
        """A count of things that take at least `item_bytes` each."""
        count = self.number("Q", field)
        most = min(limit, (self._limit - self.position) // item_bytes)
        if count > most:
            raise self.corrupt(field, f"is {count}, at most {most} are possible")
        return count

    def string(self, field: str, *, limit: int = MAX_HEADER_BYTES) -> str:
        """A length and as many bytes of UTF-8."""
        length = self.count(f"length of {field}", limit=limit, item_bytes=1)
        start = self.take(length, field)
        try:
            return self._file.data[start : start + length].decode()
        except UnicodeDecodeError as error:
            raise self.corrupt(field, "is not UTF-8") from error

    def value(self, field: str) -> object:
        """A type and a value of it: int, float, bool, str or an array (see `Checkpoint`)."""
        kind = self._type(field)
        if kind is ValueType.STRING:
            return self.string(field)
        if kind is ValueType.ARRAY:
            return self._array(field, depth=1)
        number = self._scalar(_CODES[kind], field)
        return bool(number) if kind is ValueType.BOOL else number

    def _scalar(self, code: str, field: str) -> int | float:
        layout = "<" + code
        start = self.take(struct.calcsize(layout), field)
        number: int | float = struct.unpack_from(layout, self._file.data, start)[0]
        return number

    def _type(self, field: str) -> ValueType:
        code = self.number("I", f"type of {field}")
        try:
            return ValueType(code)
        except ValueError:
            raise self.corrupt(f"type of {field}", f"is {code}, known are 0 to 12") from None

    def _array(self, field: str, *, depth: int) -> object:
        if depth > MAX_NESTING:
            raise self.corrupt(field, f"nests arrays {depth} deep, the limit is {MAX_NESTING}")
        kind = self._type(field)
        if kind is ValueType.STRING:
            return self._strings(field)
        if kind is ValueType.ARRAY:
            count = self._item_count(field, item_bytes=12, weight=INNER_ARRAY_ITEMS)
            return tuple(self._array(f"{field}[{i}]", depth=depth + 1) for i in range(count))
        numbers = array(_CODES[kind])
        count = self.count(
            f"length of {field}", limit=MAX_HEADER_BYTES, item_bytes=numbers.itemsize
        )
        start = self.take(count * numbers.itemsize, field)
        numbers.frombytes(self._file.data[start : self.position])
        return numbers

    def _item_count(self, field: str, *, item_bytes: int, weight: int) -> int:
        limit = self._items_left // weight
        count = self.count(f"length of {field}", limit=limit, item_bytes=item_bytes)
        self._items_left -= count * weight
        return count

    def _strings(self, field: str) -> StringArray:
        count = self._item_count(field, item_bytes=_LENGTH.size, weight=1)
        begin = position = self.position
        # Written out, not calling string(): it runs a million times for some files.
        data, limit, length_at = self._file.data, self._limit, _LENGTH.unpack_from
        starts = array("Q")
        for index in range(count):
            position += _LENGTH.size
            if (
                position > limit
                or (length := length_at(data, position - _LENGTH.size)[0]) > limit - position
            ):
                raise self.corrupt(f"{field}[{index}]", f"passes the end of the header at {limit}")
            starts.append(position - begin)
            position += length
        starts.append(position - begin + _LENGTH.size)
        self.position = position
        return StringArray(f"{self.file_name}: {field}", self._file.data[begin:position], starts)
