"""What is wrong with JSON is said in our words, which the catalogues have."""

from __future__ import annotations

import json

import pytest

from studio.models.json_faults import json_fault


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": "b', "look at line 1, character 7"),
        (b'{"a":\n 1,, }', "look at line 2, character 4"),
        (b'"\xff"', "it is no text in UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"1" * 5_000, "a number in it has thousands of digits"),
    ],
)
def test_faults_in_words(data: bytes, words: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as caught:
        json.loads(data)
    assert json_fault(caught.value) == words


def test_our_own_words_stay() -> None:
    assert (
        json_fault(ValueError("it has no list of calibrations")) == "it has no list of calibrations"
    )
