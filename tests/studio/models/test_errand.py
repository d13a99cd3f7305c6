"""An errand survives its way; anything else on that way is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.models.errand import Errand


@pytest.mark.parametrize(
    "errand",
    [
        Errand(),
        Errand(text="Grüße\n„an“ \\ alle 漢"),
        Errand(files=(Path("/tmp/a b.gguf"), Path("/ü.json"))),
    ],
)
def test_it_is_the_same_after_its_way(errand: Errand) -> None:
    line = errand.to_bytes()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert Errand.from_bytes(line) == errand


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"hello\n",
        b"[]\n",
        b'{"text": 3, "files": []}\n',
        b'{"text": "x"}\n',
        b'{"text": "x", "files": "abc"}\n',
        b'{"text": "x", "files": ["relative"]}\n',
        b'{"text": "x", "files": [1]}\n',
        b"\xff\xfe\n",
        b"[" * 100_000,
        b'{"text": "", "files": [' + b'"/a",' * 200 + b'"/a"]}\n',
    ],
)
def test_what_is_no_errand_is_told_from_one(line: bytes) -> None:
    assert Errand.from_bytes(line) is None
