"""Text in any encoding is read right, and what is none is told from it."""

from __future__ import annotations

import codecs
import random

import pytest

from studio.services.attachments.text_files import decode

GERMAN = "Größe: 3 €\nStraße\n" * 20


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"],
)
def test_german_text_in_usual_encodings(encoding: str) -> None:
    assert decode(GERMAN.encode(encoding)) == GERMAN


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_any_script_in_encodings_that_say_what_they_are(encoding: str) -> None:
    text = "漢字 مرحبا 🎉 x = 1\n"
    assert decode(text.encode(encoding)) == text


def test_line_ends_become_one_kind() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\nb\nc\n"


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)) * 20,
        b"\x7fELF" + bytes(400),
        codecs.BOM_UTF8 + b"\xff\xfe\xff",
        bytes(100),
        b"\x00\x01" * 300,
    ],
)
def test_binary_files_are_no_text(data: bytes) -> None:
    assert decode(data) is None


def test_nothing_at_all_is_an_empty_text() -> None:
    assert decode(b"") == ""


def test_random_bytes_never_raise() -> None:
    dice = random.Random(5)
    for _ in range(500):
        decode(dice.randbytes(dice.randint(0, 300)))


def test_a_few_colour_codes_in_a_log_do_no_harm() -> None:
    text = "\x1b[31merror\x1b[0m: it broke\n" * 50
    assert decode(text.encode()) == text
