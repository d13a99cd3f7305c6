"""The tokenizer.ggml.* keys of a GGUF file, checked: types, lengths, ids in range.

Used by the thread that opens the file. No torch, no tokenizers.
Source of the keys and of the values where a key is absent: the GGUF specification and llama.cpp.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from engine.errors import CorruptModel
from engine.formats.base import Checkpoint
from engine.formats.mapped_file import DAMAGED, shorten

_NO_TOKEN = 0xFFFFFFFF
"""How some files write "there is none"."""


class TokenKind(IntEnum):
    """What tokenizer.ggml.token_type says of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class GgufFields:
    """Typed access; every method raises CorruptModel, naming the key, for a value that cannot be."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.name = checkpoint.path.name
        self._metadata = checkpoint.metadata

    def corrupt(self, key: str, problem: str) -> CorruptModel:
        """The error to raise about `key`."""
        return CorruptModel(f"{self.name}: tokenizer.ggml.{key} {problem}; {DAMAGED}")

    def has(self, key: str) -> bool:
        return f"tokenizer.ggml.{key}" in self._metadata

    def text(self, key: str, default: str) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.corrupt(key, f"must be a string, it is {shorten(value)}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.corrupt(key, f"must be true or false, it is {shorten(value)}")
        return value

    def token_id(self, key: str, *, vocab_size: int, default: int | None = None) -> int | None:
        """An id below `vocab_size`; None where the key is absent or says that there is none."""
        value = self._get(key, default if default is None or default < vocab_size else None)
        if value is None or value == _NO_TOKEN:
            return None
        if not isinstance(value, int) or not 0 <= value < vocab_size:
            raise self.corrupt(key, f"is {shorten(value)}, the vocabulary has {vocab_size} tokens")
        return value

    def strings(self, key: str, *, limit: int) -> list[str]:
        """An array of at most `limit` strings; an absent key is an error."""
        values = self._array(key)
        if len(values) > limit:
            raise self.corrupt(key, f"has {len(values)} entries, the limit is {limit}")
        strings = list(values)
        if not set(map(type, strings)) <= {str}:
            raise self.corrupt(key, "must be an array of strings")
        return strings

    def kinds(self, *, length: int) -> list[int]:
        """The `TokenKind` of each of `length` tokens; NORMAL for all where the file does not say."""
        if not self.has("token_type"):
            return [TokenKind.NORMAL] * length
        return self._numbers("token_type", length, {int})

    def scores(self, *, length: int) -> list[float]:
        """The score of each of `length` tokens; 0 for all where the file does not say."""
        if not self.has("scores"):
            return [0.0] * length
        scores: list[float] = self._numbers("scores", length, {int, float})
        if any(map(math.isnan, scores)):
            raise self.corrupt("scores", "has an entry that is no number (NaN)")
        return scores

    def raw_bytes(self, key: str) -> bytes:
        """An array of 8-bit numbers as bytes; empty where the key is absent."""
        if not self.has(key):
            return b""
        values = self._array(key)
        if not isinstance(values, array) or values.itemsize != 1:
            raise self.corrupt(key, "must be an array of bytes")
        return values.tobytes()

    def _get(self, key: str, default: object) -> object:
        return self._metadata.get(f"tokenizer.ggml.{key}", default)

    def _numbers(self, key: str, length: int, types: set[type]) -> list[Any]:
        values = list(self._array(key))
        if not set(map(type, values)) <= types:
            raise self.corrupt(key, "must be an array of numbers")
        if len(values) < length:
            raise self.corrupt(key, f"has {len(values)} entries for {length} tokens")
        return values[:length]

    def _array(self, key: str) -> Sequence[Any]:
        value = self._get(key, None)
        if not isinstance(value, Sequence | array) or isinstance(value, str | bytes):
            raise self.corrupt(key, f"must be an array, it is {shorten(value)}")
        return value
