"""What the strings of a vocabulary stand for: from a piece, as files spell it, to the bytes of a text.

Pure functions, called on the engine thread for every generated token. No torch, no tokenizers.
"""

from __future__ import annotations

import functools
import re
from enum import Enum

WORD_START = "\u2581"
"""SentencePiece's visible space."""

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class PieceStyle(Enum):
    """How a vocabulary spells bytes and spaces."""

    BYTE_LEVEL = "byte_level"
    """Every byte is one printable character (GPT-2)."""
    SENTENCEPIECE = "sentencepiece"
    """U+2581 is a space, <0x0A> a byte."""
    WORDPIECE = "wordpiece"
    """##x continues a word, anything else begins one."""
    PLAIN = "plain"
    """The piece is the text."""


@functools.cache
def byte_alphabet() -> dict[int, str]:
    """Byte to character in byte-level vocabularies: printable Latin-1 is itself, the rest follows U+0100.

    Source: GPT-2's `bytes_to_unicode` (openai/gpt-2, src/encoder.py).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in alphabet)
    alphabet.update({byte: chr(0x100 + place) for place, byte in enumerate(others)})
    return alphabet


@functools.cache
def _to_latin1() -> dict[int, int]:
    return {ord(char): byte for byte, char in byte_alphabet().items()}


def piece_bytes(piece: str, style: PieceStyle) -> bytes:
    """The bytes an ordinary token stands for; characters outside a style's alphabet stand for themselves."""
    match style:
        case PieceStyle.BYTE_LEVEL:
            table = _to_latin1()
            if all(ord(char) in table for char in piece):
                return piece.translate(table).encode("latin-1")
        case PieceStyle.SENTENCEPIECE:
            if byte := _BYTE_PIECE.fullmatch(piece):
                return bytes.fromhex(byte[1])
            piece = piece.replace(WORD_START, " ")
        case PieceStyle.WORDPIECE:
            piece = piece[2:] if piece.startswith("##") else " " + piece
        case PieceStyle.PLAIN:
            pass
    return piece.encode()
