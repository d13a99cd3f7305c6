"""Thinking is told from the answer, the same for every way the text may arrive."""

from __future__ import annotations

import random

import pytest

from studio.models.thoughts import ThoughtSplitter, without_thoughts


def split(*deltas: str) -> tuple[str, str]:
    """(what was thought, what was answered)."""
    splitter = ThoughtSplitter()
    pieces = [piece for delta in deltas for piece in splitter.feed(delta)] + splitter.finish()
    whole = "".join(deltas)
    assert all(whole[p.start : p.start + len(p.text)] == p.text for p in pieces)
    if splitter.was_thought_all_along:
        return "", ""
    return (
        "".join(p.text for p in pieces if p.is_thought),
        "".join(p.text for p in pieces if not p.is_thought),
    )


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>abc</think>\n\nHi", "abc", "\n\nHi"),
        ("\n<think>abc", "abc", ""),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("<thinking>a</think>b</thinking>c", "a</think>b", "c"),
        ("Hello <think>x</think>", "", "Hello <think>x</think>"),
        ("a </think> in a sentence", "", "a </think> in a sentence"),
        ("  <thi", "", "  <thi"),
        ("", "", ""),
    ],
)
def test_what_stands_in_tags_at_the_beginning_is_thinking(
    text: str, thought: str, answer: str
) -> None:
    assert split(text) == (thought, answer)
    dice = random.Random(text)
    for _ in range(50):
        cuts = sorted(dice.randrange(len(text) + 1) for _ in range(4))
        deltas = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert split(*deltas) == (thought, answer)


def test_a_tag_that_nothing_opened_makes_all_before_it_thinking() -> None:
    splitter = ThoughtSplitter()
    pieces = splitter.feed("I should\nsay so.\n</think>\n\nSo.") + splitter.finish()
    assert splitter.was_thought_all_along
    assert pieces[-1].text == "\n\nSo."
    assert not pieces[-1].is_thought


def test_it_is_known_at_once_that_a_model_thinks() -> None:
    splitter = ThoughtSplitter()
    splitter.feed("<think>")
    assert splitter.is_thinking
    splitter.feed("x</think>")
    assert not splitter.is_thinking


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>\n\nb", "b"),
        ("a\n</think>\nb", "b"),
        ("b", "b"),
        ("<think>a", ""),
        ("x < y", "x < y"),
    ],
)
def test_an_answer_can_be_had_alone(text: str, answer: str) -> None:
    assert without_thoughts(text) == answer
