"""Who may enter, and what is missing."""

from __future__ import annotations

import pytest

from engine.core.admission import Admission, may_hold, may_sit
from engine.runs import WaitKind


@pytest.mark.parametrize(("taken", "admitted"), [(0, True), (2, True), (3, False), (4, False)])
def test_a_party_needs_a_seat_for_each(taken: int, *, admitted: bool) -> None:
    assert may_sit(2, seats_taken=taken, seats=4).is_admitted is admitted


@pytest.mark.parametrize(
    ("need", "spare", "margin", "growth", "waits_for"),
    [
        (3, 5, 2, 0, None),
        (3, 4, 2, 0, WaitKind.NO_ROOM),
        (0, 2, 2, 0, None),
        (0, -1, 0, 0, WaitKind.NO_ROOM),
        (3, 9, 2, 4, None),
        (3, 8, 2, 4, WaitKind.WOULD_NOT_LAST),
    ],
)
def test_pages_must_fit_with_a_margin_and_with_what_all_will_grow_to(
    need: int, spare: int, margin: int, growth: int, waits_for: WaitKind | None
) -> None:
    answer = may_hold(need, spare=spare, margin=margin, growth=growth)
    assert answer.waits_for is waits_for


def test_the_answer_has_the_numbers() -> None:
    assert may_hold(3, spare=4, margin=2, growth=0) == Admission(WaitKind.NO_ROOM, 5, 4)
    assert may_hold(3, spare=5, margin=2, growth=9) == Admission(WaitKind.WOULD_NOT_LAST, 14, 5)
