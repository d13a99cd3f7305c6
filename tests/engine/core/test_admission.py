"""Who may enter, with the reason."""

from __future__ import annotations

import pytest

from engine.core.admission import Admission, may_hold, may_sit


@pytest.mark.parametrize(
    ("num_running", "tokens_left", "answer"),
    [
        (4, 9, Admission(False, "all 4 seats are taken")),
        (3, 0, Admission(False, "those before it use all tokens of this step")),
        (3, -5, Admission(False, "those before it use all tokens of this step")),
        (3, 1, Admission(True, "3 of 4 seats are taken")),
    ],
)
def test_a_seat_needs_tokens_of_the_step(
    num_running: int, tokens_left: int, answer: Admission
) -> None:
    assert may_sit(num_running, seats=4, tokens_left=tokens_left) == answer


@pytest.mark.parametrize(
    ("need", "spare", "num_running", "admitted"),
    [
        (3, 5, 2, True),
        (3, 4, 2, False),
        (0, 2, 2, True),
        (0, -1, 2, False),
        (9, 3, 0, True),
    ],
)
def test_pages_must_fit_with_a_margin_unless_nothing_runs(
    need: int, spare: int, num_running: int, *, admitted: bool
) -> None:
    assert may_hold(need, spare_pages=spare, num_running=num_running).admitted is admitted


def test_the_reason_has_the_numbers() -> None:
    answer = may_hold(3, spare_pages=4, num_running=2)
    assert answer.reason == "it needs 3 pages and a margin of 2, 4 are spare"
