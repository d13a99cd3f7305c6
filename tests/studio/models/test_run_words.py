"""Every reason there is has a sentence of its own, and none speaks of failure."""

from __future__ import annotations

import re

import pytest

from engine.runs import ParkCause, ParkReason, RunState, WaitKind, WaitReason
from studio.models.run_words import (
    expected_wait_words,
    reason_words,
    said_latest_s,
    state_words,
)

REASONS = [WaitReason(kind=kind, place=1) for kind in WaitKind] + [
    ParkReason(cause=cause) for cause in ParkCause
]


@pytest.mark.parametrize("reason", REASONS, ids=repr)
def test_every_reason_is_a_sentence_without_words_of_failure(
    reason: WaitReason | ParkReason,
) -> None:
    words = reason_words(reason)
    assert words[0].isupper()
    assert not words.endswith(".")
    assert not re.search(r"stall|fail|error|stuck|hang|crash", words, re.IGNORECASE)


def test_kinds_of_waiting_can_be_told_apart() -> None:
    sentences = [reason_words(WaitReason(kind=kind, place=1)) for kind in WaitKind]
    assert len(set(sentences)) == len(WaitKind)


def test_figures_are_in_the_sentence() -> None:
    room = WaitReason(kind=WaitKind.NO_ROOM, place=1, pages_needed=12, pages_spare=3)
    assert reason_words(room) == "Waiting for room: it needs 12 pages and 3 are spare"
    line = WaitReason(kind=WaitKind.BEHIND_OTHERS, place=2, ahead_ids=("a",))
    assert reason_words(line) == "Waiting in line behind 1 other request"
    park = ParkReason(cause=ParkCause.PAGES_SHORT, for_ids=("a", "b"))
    assert reason_words(park) == "Parked to make room for 2 other requests"


def test_every_state_has_words() -> None:
    assert len({state_words(state) for state in RunState}) == len(RunState)


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ((0.0, 0.0), "back at any moment"),
        ((0.2, 1.0), "back at any moment"),
        ((0.2, 20.4), "back within 21 s"),
        ((0.0, 59.5), "back within 1 min"),
        ((0.0, 180.0), "back within 3 min"),
        ((4.8, 20.4), "back in 4 to 21 s"),
        ((4.2, 4.4), "back in 4 to 5 s"),
        ((4.0, 4.0), "back in about 4 s"),
        ((4.2, 185.0), "back in 4 s to 4 min"),
        ((100.0, 240.0), "back in 1 to 4 min"),
    ],
)
def test_an_expected_wait_is_a_range(expected: tuple[float, float], words: str) -> None:
    assert expected_wait_words(expected) == words


@pytest.mark.parametrize(
    "latest_s", [0.0, 0.3, 1.0, 1.01, 4.0, 20.4, 59.2, 60.0, 61.0, 119.9, 3601.0]
)
def test_the_words_never_say_less_than_the_latest_that_is_foretold(latest_s: float) -> None:
    said_s = said_latest_s(latest_s)
    assert latest_s <= said_s
    if said_s > 1:
        number, unit = expected_wait_words((0.0, latest_s)).split()[-2:]
        assert int(number) * {"s": 1, "min": 60}[unit] == said_s
