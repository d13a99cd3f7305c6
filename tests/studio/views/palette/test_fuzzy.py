"""A few letters find what they stand for, the best first."""

from __future__ import annotations

import random

import pytest

from studio.views.palette.fuzzy import fold, score


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("nch", "New chat"),
        ("chat new", "New chat"),
        ("GRUSSE", "Grüße"),
        ("e", "École"),
        ("", "anything"),
        ("  ", "anything"),
    ],
)
def test_letters_in_order_are_found_whatever_their_case_and_accents(typed: str, text: str) -> None:
    assert score(typed, text) is not None


@pytest.mark.parametrize(("typed", "text"), [("tahc", "New chat"), ("newx", "New chat"), ("a", "")])
def test_letters_that_are_not_there_are_not_found(typed: str, text: str) -> None:
    assert score(typed, text) is None


@pytest.mark.parametrize(
    ("typed", "better", "worse"),
    [
        ("set", "Settings", "Reset the keys"),
        ("nc", "New chat", "Engine cache"),
        ("pool", "Pool", "Pool size of the engine"),
        ("split", "Split", "Simply list it"),
    ],
)
def test_starts_of_words_and_runs_of_letters_count_most(
    typed: str, better: str, worse: str
) -> None:
    first, second = score(typed, better), score(typed, worse)
    assert first is not None
    assert second is None or first > second


def test_any_text_finds_itself() -> None:
    dice = random.Random(7)
    letters = "aäÅ ßé-_.&…漢字مİ\u0301x"
    for _ in range(300):
        text = "".join(dice.choice(letters) for _ in range(dice.randint(1, 12)))
        assert score(text, text) is not None, text
        assert fold(fold(text)) == fold(text)
