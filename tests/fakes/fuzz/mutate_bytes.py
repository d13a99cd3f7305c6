"""Damage to bytes that know nothing of a format: flips, cuts, splices and wrong numbers."""

from __future__ import annotations

from random import Random

NUMBERS = (0, 1, 2, 3, 7, 8, 31, 32, 33, 64, 127, 128, 255, 256, 4096, 65_535, 65_536, 1 << 20,
           (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
"""Where readers go wrong: around zero, around powers of two, and at the ends of the integer types."""


def damage(random: Random, data: bytes, header: int) -> bytes:
    """One change of `data`, most often within its first `header` bytes."""
    if not data:
        return random.randbytes(random.randrange(64))
    return random.choice(_CHANGES)(random, data, _place(random, data, header))


def _place(random: Random, data: bytes, header: int) -> int:
    return random.randrange(
        min(header, len(data)) if header and random.random() < 0.9 else len(data)
    )


def _flip(random: Random, data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[at] ^= 1 << random.randrange(8)
        at = min(len(data) - 1, at + random.randrange(16))
    return bytes(changed)


def _cut(_: Random, data: bytes, at: int) -> bytes:
    return data[:at]


def _remove(random: Random, data: bytes, at: int) -> bytes:
    return data[:at] + data[at + random.choice((1, 4, 8, random.randrange(1, 200))) :]


def _repeat(random: Random, data: bytes, at: int) -> bytes:
    size = random.choice((1, 8, random.randrange(1, 500)))
    return data[: at + size] + data[at:]


def _insert(random: Random, data: bytes, at: int) -> bytes:
    return data[:at] + random.randbytes(random.choice((1, 4, 8, 100))) + data[at:]


def _overwrite(random: Random, data: bytes, at: int) -> bytes:
    size = random.choice((1, 2, 4, 8))
    number = random.choice(NUMBERS) % (1 << 8 * size)
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


def _splice(random: Random, data: bytes, at: int) -> bytes:
    size, other = random.randrange(1, 64), random.randrange(len(data))
    return data[:at] + data[other : other + size] + data[at + size :]


_CHANGES = (_flip, _flip, _flip, _cut, _remove, _repeat, _insert, _overwrite, _overwrite, _splice)
