"""One GGUF file: every kind of value is read, every lie about a size is told by field name."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from engine.errors import CorruptModel, EngineError, ModelNotFound, UnsupportedModel
from engine.formats import gguf_values
from engine.formats.gguf import GgufFile, read_gguf_file
from fakes.gguf_bytes import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
    U64,
    RawGguf,
    RawKey,
    RawTensor,
    array,
    number,
    text,
)

HUGE = (1 << 64) - 1
ODD_NAME = b"\x1b[31m\n" + b"x" * 5000


def read(folder: Path, content: bytes | RawGguf) -> GgufFile:
    path = folder / "model.gguf"
    path.write_bytes(content if isinstance(content, bytes) else content.build())
    return read_gguf_file(path)


def one_value(folder: Path, kind: int, value: bytes) -> object:
    return read(folder, RawGguf(keys=[RawKey(b"a.key", kind, value)])).metadata["a.key"]


def one_tensor(*dimensions: int, kind: int = 0, offset: int = 0, data: int = 4096) -> RawGguf:
    return RawGguf(tensors=[RawTensor(b"a", list(dimensions), kind, offset)], data=bytes(data))


@pytest.mark.parametrize(
    ("kind", "value"),
    [(U8, 200), (I8, -100), (U16, 60_000), (I16, -30_000), (U32, 1 << 31), (I32, -(1 << 31)), (U64, HUGE),
     (I64, -(1 << 63)), (F32, 0.5), (F64, 1e300), (BOOL, True), (BOOL, False)],
)  # fmt: skip
def test_numbers_of_every_type_are_read(tmp_path: Path, kind: int, value: float) -> None:
    read_back = one_value(tmp_path, kind, number(kind, value))
    assert read_back == value
    assert type(read_back) is type(value)


@pytest.mark.parametrize("value", ["", "plain", "füñ 🎉", "a\0b", "x" * 100_000])
def test_strings_are_read(tmp_path: Path, value: str) -> None:
    assert one_value(tmp_path, STRING, text(value)) == value


@pytest.mark.parametrize("kind", [U8, I8, U16, I16, U32, I32, U64, I64, F32, F64])
def test_arrays_of_numbers_hold_python_numbers(tmp_path: Path, kind: int) -> None:
    values = one_value(tmp_path, ARRAY, array(kind, [number(kind, n) for n in (0, 1, 100)]))
    assert list(values) == [0, 1, 100]  # type: ignore[call-overload]
    assert type(values[2]) in (int, float)  # type: ignore[index]


def test_arrays_of_strings_index_iterate_and_slice(tmp_path: Path) -> None:
    words = ["", "a", "ü", "long" * 50, ""]
    values = one_value(tmp_path, ARRAY, array(STRING, [text(word) for word in words]))
    assert isinstance(values, gguf_values.StringArray)
    assert len(values) == 5
    assert list(values) == words
    assert [values[i] for i in range(-5, 5)] == words + words
    assert values[1:4] == words[1:4]
    assert "ü" in values
    with pytest.raises(IndexError):
        values[5]


def test_an_empty_array_is_read(tmp_path: Path) -> None:
    assert list(one_value(tmp_path, ARRAY, array(STRING, []))) == []  # type: ignore[call-overload]
    assert list(one_value(tmp_path, ARRAY, array(F32, []))) == []  # type: ignore[call-overload]


def test_nested_arrays_are_tuples(tmp_path: Path) -> None:
    inner = [array(U8, [b"\1", b"\2"]), array(STRING, [text("x")]), array(ARRAY, [])]
    values = one_value(tmp_path, ARRAY, array(ARRAY, inner))
    assert isinstance(values, tuple)
    assert [list(part) for part in values] == [[1, 2], ["x"], []]


def test_nesting_has_a_limit(tmp_path: Path) -> None:
    value = array(U8, [b"\1"])
    for _ in range(gguf_values.MAX_NESTING - 1):
        value = array(ARRAY, [value])
    one_value(tmp_path, ARRAY, value)
    with pytest.raises(CorruptModel, match=r"'a\.key'.* nests arrays 5 deep, the limit is 4"):
        one_value(tmp_path, ARRAY, array(ARRAY, [value]))


def test_a_string_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match=r"model\.gguf: 'a\.key' is not UTF-8"):
        one_value(tmp_path, STRING, text(b"\xff"))
    values = one_value(tmp_path, ARRAY, array(STRING, [text("ok"), text(b"\xc3")]))
    with pytest.raises(CorruptModel, match=r"model\.gguf: 'a\.key'\[1\] is not UTF-8"):
        list(values)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (STRING, struct.pack("<Q", HUGE)),
        (STRING, struct.pack("<Q", 1)),
        (STRING, b"\1\0"),
        (U64, b"\0" * 7),
        (ARRAY, array(U8, [b"\0"] * 9, count=10)),
        (ARRAY, array(F64, [], count=HUGE)),
        (ARRAY, array(STRING, [], count=HUGE)),
        (ARRAY, array(STRING, [text("a")], count=2)),
        (ARRAY, array(STRING, [struct.pack("<Q", HUGE), text("")])),
        (ARRAY, array(ARRAY, [], count=HUGE)),
        (ARRAY, array(ARRAY, [array(U8, [], count=HUGE)])),
        (ARRAY, b"\0"),
        (13, b"\0" * 100),
        (ARRAY, array(13, [b"\0"])),
    ],
)
def test_values_that_pass_the_end_are_refused_by_name(
    tmp_path: Path, kind: int, value: bytes
) -> None:
    with pytest.raises(
        CorruptModel, match=r"model\.gguf: .*a\.key.*; the file is damaged or incomplete"
    ):
        one_value(tmp_path, kind, value)


def test_the_number_of_strings_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_values, "MAX_ITEMS", 5)
    words = [text("a")] * 3
    keys = [RawKey(name, ARRAY, array(STRING, words)) for name in (b"one", b"two")]
    read(tmp_path, RawGguf(keys=keys[:1]))
    with pytest.raises(CorruptModel, match="length of 'two' is 3, at most 2 are possible"):
        read(tmp_path, RawGguf(keys=keys))


def test_the_header_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_values, "MAX_HEADER_BYTES", 200)
    with pytest.raises(CorruptModel, match=r"'a\.key' is 300, at most \d+ are possible"):
        one_value(tmp_path, STRING, text("x" * 300))


@pytest.mark.parametrize("field", ["num_keys", "num_tensors"])
@pytest.mark.parametrize("count", [2, 1000, 1 << 32, HUGE])
def test_inflated_counts_are_refused(tmp_path: Path, field: str, count: int) -> None:
    raw = RawGguf(keys=[RawKey(b"k", U8, b"\1")], tensors=[RawTensor(b"t", [1])])
    setattr(raw, field, count)
    with pytest.raises(CorruptModel):
        read(tmp_path, raw)


@pytest.mark.parametrize("version", [2, 3])
def test_versions_2_and_3_are_read(tmp_path: Path, version: int) -> None:
    assert read(tmp_path, RawGguf(version=version)).metadata == {}


@pytest.mark.parametrize("version", [0, 1, 4, (1 << 31) + 3])
def test_other_versions_are_refused(tmp_path: Path, version: int) -> None:
    with pytest.raises(UnsupportedModel, match=rf"GGUF version {version}, "):
        read(tmp_path, RawGguf(version=version))


def test_a_big_endian_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="big-endian"):
        read(tmp_path, b"GGUF" + struct.pack(">IQQ", 3, 0, 0))


@pytest.mark.parametrize("content", [b"G", b"GGUF", b"GGUF\3\0\0\0", b"GGUF\3\0\0\0" + bytes(15)])
def test_a_file_that_ends_in_its_first_fields_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptModel):
        read(tmp_path, content)


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match="begins with 50 4b 03 04, a GGUF file with 47 47 55 46"):
        read(tmp_path, b"PK\3\4 is a zip file")
    with pytest.raises(CorruptModel, match="empty"):
        read(tmp_path, b"")
    with pytest.raises(ModelNotFound):
        read_gguf_file(tmp_path)


def test_keys_and_tensors_may_not_stand_twice(tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match="'k' stands twice"):
        read(tmp_path, RawGguf(keys=[RawKey(b"k", U8, b"\1")] * 2))
    twice = RawGguf(tensors=[RawTensor(b"t", [1]), RawTensor(b"t", [1], offset=32)], data=bytes(64))
    with pytest.raises(CorruptModel, match="tensor 't' stands twice"):
        read(tmp_path, twice)


def test_tensors_are_placed_after_the_aligned_header(tmp_path: Path) -> None:
    first, second = RawTensor(b"first", [2, 3], offset=64), RawTensor(b"second", [8], offset=0)
    part = read(tmp_path, RawGguf(tensors=[first, second], data=bytes(88)))
    assert part.tensors["first"].shape == (3, 2)
    assert part.tensors["first"].num_bytes == 24
    assert part.tensors["second"].shape == (8,)
    assert part.places["first"].offset - part.places["second"].offset == 64
    assert part.places["second"].offset % 32 == 0
    assert part.places["first"].offset + 24 == part.file.size


def test_the_alignment_of_the_file_is_kept(tmp_path: Path) -> None:
    keys = [RawKey(b"general.alignment", U32, number(U32, 1024))]
    part = read(tmp_path, RawGguf(keys=keys, tensors=[RawTensor(b"t", [1])], data=bytes(2048)))
    assert part.places["t"].offset == 1024


@pytest.mark.parametrize("value", [0, 3, 48, 1 << 21, HUGE])
def test_an_impossible_alignment_is_refused(tmp_path: Path, value: int) -> None:
    with pytest.raises(
        CorruptModel, match=f"general.alignment is {value}, it must be a power of two"
    ):
        read(tmp_path, RawGguf(keys=[RawKey(b"general.alignment", U64, number(U64, value))]))


@pytest.mark.parametrize("kind", [F32, BOOL])
def test_an_alignment_that_is_no_integer_is_refused(tmp_path: Path, kind: int) -> None:
    with pytest.raises(CorruptModel, match=r"general\.alignment"):
        read(tmp_path, RawGguf(keys=[RawKey(b"general.alignment", kind, number(kind, 1))]))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (one_tensor(), "has 0 dimensions"),
        (one_tensor(1, 1, 1, 1, 1), "has 5 dimensions"),
        (one_tensor(4, 0), r"a dimension of 0 in its shape \(0, 4\)"),
        (one_tensor(HUGE), "ends at"),
        (one_tensor(1 << 32, 1 << 32), "ends at"),
        (one_tensor(HUGE, HUGE, HUGE, HUGE), "ends at"),
        (one_tensor(1024, offset=32), "ends at"),
        (one_tensor(1, offset=HUGE - 31), "ends at"),
        (one_tensor(1, offset=4), "offset 4, no multiple of the alignment 32"),
        (one_tensor(33, kind=2), "rows of 33 values, Q4_0 stores them in blocks of 32"),
        (one_tensor(16, 2, kind=2), "rows of 16 values"),
    ],
)
def test_impossible_tensors_are_refused_by_name(tmp_path: Path, raw: RawGguf, message: str) -> None:
    with pytest.raises(CorruptModel, match=rf"model\.gguf: tensor 'a' .*{message}"):
        read(tmp_path, raw)


def test_tensors_that_overlap_are_refused(tmp_path: Path) -> None:
    tensors = [RawTensor(b"a", [16], offset=32), RawTensor(b"b", [9], offset=0)]
    with pytest.raises(CorruptModel, match=r"tensor 'a' starts at .* within the tensor before it"):
        read(tmp_path, RawGguf(tensors=tensors, data=bytes(96)))


@pytest.mark.parametrize(("kind", "name"), [(16, "IQ2_XXS"), (34, "TQ1_0"), (26, "I32"), (28, "F64"),
                                            (4, "unknown type 4"), (77, "unknown type 77")])  # fmt: skip
def test_types_that_cannot_be_read_are_refused_by_name(
    tmp_path: Path, kind: int, name: str
) -> None:
    with pytest.raises(UnsupportedModel, match=f"tensor 'a' is stored as {name}"):
        read(tmp_path, one_tensor(256, kind=kind))


@pytest.mark.parametrize(
    "raw",
    [
        RawGguf(tensors=[RawTensor(ODD_NAME, [1] * 9)]),
        RawGguf(keys=[RawKey(ODD_NAME, 99, b"")]),
        RawGguf(keys=[RawKey(ODD_NAME, STRING, text(b"\xff"))]),
    ],
)
def test_long_and_odd_names_are_shortened_in_messages(tmp_path: Path, raw: RawGguf) -> None:
    with pytest.raises(CorruptModel) as caught:
        read(tmp_path, raw)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    keys = [
        RawKey(b"k", ARRAY, array(STRING, [text("a"), text("b")])),
        RawKey(b"n", F32, number(F32, 1)),
    ]
    whole = RawGguf(keys=keys, tensors=[RawTensor(b"t", [3, 5])], data=bytes(60)).build()
    read(tmp_path, whole)
    for end in range(len(whole)):
        with pytest.raises(EngineError):
            read(tmp_path, whole[:end])


def test_values_that_are_not_finite_are_read(tmp_path: Path) -> None:
    assert math.isnan(one_value(tmp_path, F32, b"\0\0\xc0\x7f"))  # type: ignore[arg-type]
