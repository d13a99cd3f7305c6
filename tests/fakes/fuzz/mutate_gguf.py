"""Lies in the fields of a GGUF file: wrong counts, types, sizes, names, values and arrays."""

from __future__ import annotations

import struct
from random import Random

from fakes.fuzz.mutate_bytes import NUMBERS, damage
from fakes.gguf_bytes import (
    ARRAY,
    CODES,
    I32,
    I64,
    STRING,
    U16,
    U32,
    U64,
    RawGguf,
    RawKey,
    array,
    number,
    text,
)

_TEXTS = (
    "", "a", "llama", "qwen2", "gpt2", "x" * 70_000, "\0", "ü🎉", "<0x41>", "{{", "{% for x in y %}", "{{ 9**9**9 }}",
)  # fmt: skip
_FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"))
_NAMES = ("general.alignment", "general.architecture", "split.count", "split.no", "split.tensors.count",
          "llama.rope.scaling.type", "llama.rope.scaling.factor", "llama.expert_count", "tokenizer.ggml.add_bos_token",
          "llama.attention.sliding_window", "llama.vocab_size", "tokenizer.ggml.added_tokens",
          "tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.eot_token_id")  # fmt: skip


def lie(random: Random, content: bytes) -> bytes:
    """One to three lies in a sound file, and now and then damage to the bytes of the result."""
    raw = RawGguf.parse(content)
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice(_LIES)(random, raw)
    data = raw.build()
    if random.random() < 0.1:
        data = damage(random, data, len(data) - len(raw.data))
    return data


def _random_value(random: Random) -> tuple[int, bytes]:
    """A type and an encoded value of it."""
    kind = random.choice((*CODES, STRING, ARRAY, ARRAY))
    return kind, _encode(random, kind, depth=1)


def _encode(random: Random, kind: int, *, depth: int) -> bytes:
    if kind == STRING:
        return text(random.choice(_TEXTS))
    if kind != ARRAY:
        return _random_number(random, kind)
    inner = random.choice((*CODES, STRING, ARRAY) if depth < 6 else tuple(CODES))
    count = random.choice((0, 1, 2) if inner == ARRAY else (0, 1, 2, 300))
    return array(inner, [_encode(random, inner, depth=depth + 1) for _ in range(count)])


def _random_number(random: Random, kind: int) -> bytes:
    if CODES[kind] in "fd":
        return number(kind, random.choice(_FLOATS))
    size = struct.calcsize(CODES[kind])
    return (random.choice(NUMBERS) % (1 << 8 * size)).to_bytes(size, "little")


def _swap_type(random: Random, raw: RawGguf) -> None:
    if raw.keys:
        random.choice(raw.keys).kind = random.choice((*range(14), 255, 1 << 31))


def _replace_value(random: Random, raw: RawGguf) -> None:
    if raw.keys:
        key = random.choice(raw.keys)
        key.kind, key.value = _random_value(random)


def _change_number(random: Random, raw: RawGguf) -> None:
    numbers = [key for key in raw.keys if key.kind in CODES]
    if numbers:
        key = random.choice(numbers)
        key.value = _random_number(random, key.kind)


def _change_text(random: Random, raw: RawGguf) -> None:
    texts = [key for key in raw.keys if key.kind == STRING]
    if texts:
        key = random.choice(texts)
        content = key.value[8:]
        key.value = text(
            random.choice((damage(random, content, 0), content * 2, random.choice(_TEXTS).encode()))
        )


def _change_array(random: Random, raw: RawGguf) -> None:
    """Another count, element type or content of an array."""
    arrays = [key for key in raw.keys if key.kind == ARRAY and len(key.value) >= 12]
    if not arrays:
        return
    key = random.choice(arrays)
    kind, count = struct.unpack_from("<IQ", key.value)
    content = key.value[12:]
    choice = random.randrange(3)
    if choice == 0:
        count = random.choice((*NUMBERS, count + 1, max(count, 1) - 1))
    elif choice == 1:
        kind = random.randrange(14)
    else:
        content = damage(random, content, 0)
    key.value = struct.pack("<IQ", kind, count % (1 << 64)) + content


def _change_strings(random: Random, raw: RawGguf) -> None:
    """More, fewer, other or shuffled elements: lies in the vocabulary and its merges."""
    keys = [k for k in raw.keys if k.kind == ARRAY and k.value[:4] == struct.pack("<I", STRING)]
    if not keys:
        return
    key = random.choice(keys)
    items = _strings(key.value)
    choice = random.randrange(4)
    if choice == 0:
        random.shuffle(items)
    elif choice == 1:
        items = items[: random.choice((0, 1, 5, 290))]
    else:
        for _ in range(random.choice((1, 3, 50))):
            item = random.choice((*items, b"", b"\xff", b"a b c", b"x" * 1000))
            at = random.randrange(len(items) + 1)
            items[at : at + choice - 2] = [item]  # inserted, or in place of another
    key.value = array(STRING, [text(item) for item in items])


def _strings(value: bytes) -> list[bytes]:
    """The elements of an array of strings, as far as they are whole."""
    items, position = [], 12
    while position + 8 <= len(value):
        (length,) = struct.unpack_from("<Q", value, position)
        items.append(value[position + 8 : position + 8 + length])
        position += 8 + length
    return items


def _move_keys(random: Random, raw: RawGguf) -> None:
    if not raw.keys:
        return
    at, other = random.randrange(len(raw.keys)), random.randrange(len(raw.keys))
    choice = random.randrange(4)
    if choice == 0:
        del raw.keys[at]
    elif choice == 1:
        raw.keys.append(raw.keys[at])
    elif choice == 2:
        raw.keys[at].value, raw.keys[other].value = raw.keys[other].value, raw.keys[at].value
    else:
        raw.keys[at].name = random.choice((raw.keys[other].name, b"", b"\xff\xfe", b"x" * 70_000))


def _add_key(random: Random, raw: RawGguf) -> None:
    raw.keys.append(RawKey(random.choice(_NAMES).encode(), *_random_value(random)))


def _change_tensor(random: Random, raw: RawGguf) -> None:
    if not raw.tensors:
        return
    tensor, other = random.choice(raw.tensors), random.choice(raw.tensors)
    choice = random.randrange(7)
    if choice == 0:
        tensor.dimensions = [
            random.choice((*NUMBERS, 64)) for _ in range(random.choice((0, 1, 2, 3, 4, 5, 50)))
        ]
    elif choice == 1:
        tensor.kind = random.choice((*range(45), 1 << 31))
    elif choice == 2:
        tensor.offset = random.choice((*NUMBERS, tensor.offset + 32, other.offset))
    elif choice == 3:
        tensor.name = random.choice(
            (other.name, b"", b"\xff", b"blk.-1.attn_q.weight", b"x" * 70_000)
        )
    elif choice == 4:
        raw.tensors.remove(tensor)
    elif choice == 5:
        tensor.dimensions, other.dimensions = other.dimensions, tensor.dimensions
    else:
        tensor.dimensions = tensor.dimensions[::-1]


def _change_frame(random: Random, raw: RawGguf) -> None:
    choice = random.randrange(5)
    if choice == 0:
        raw.num_keys = random.choice((*NUMBERS, len(raw.keys) + 1))
    elif choice == 1:
        raw.num_tensors = random.choice((*NUMBERS, len(raw.tensors) + 1))
    elif choice == 2:
        raw.version = random.choice((0, 1, 2, 4, 3 << 24, (1 << 32) - 1))
    elif choice == 3:
        raw.data = raw.data[: random.randrange(len(raw.data) + 1)]
    else:
        raw.data += random.randbytes(random.randrange(100))


def _change_split(random: Random, raw: RawGguf) -> None:
    """A split key gets another number, in a file of any kind."""
    name = random.choice((b"split.no", b"split.count", b"split.tensors.count"))
    kind = random.choice((U16, U32, I32, U64, I64))
    raw.keys = [key for key in raw.keys if key.name != name]
    raw.keys.append(RawKey(name, kind, _random_number(random, kind)))


_LIES = (_swap_type, _replace_value, _change_number, _change_number, _change_text, _change_array, _change_strings,
         _move_keys, _move_keys, _add_key, _change_tensor, _change_tensor, _change_frame, _change_split)  # fmt: skip
