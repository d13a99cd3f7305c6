"""Which gaps are put down to a park."""

from __future__ import annotations

import pytest

from studio.bench.gaps import split_gaps
from studio.bench.stream import Reply


def reply(times: list[float], notes: list[tuple[float, str]] | None = None) -> Reply:
    return Reply(0.0, token_times_s=times, notes=notes or [])


def test_a_gap_belongs_to_the_parks_of_others_that_lie_in_it() -> None:
    busy = reply([1.0, 1.1, 1.2, 1.5, 1.6])
    parked = reply([1.0, 1.1], [(1.3, "preempted"), (1.55, "resumed"), (1.15, "preempt-keepalive")])
    gaps = split_gaps([busy, parked])
    assert gaps.at_moves_s == pytest.approx([0.3, 0.1])
    assert gaps.usual_s == pytest.approx([0.1, 0.1, 0.1])
    assert gaps.ratio == pytest.approx(2.98, rel=0.01)


def test_the_gap_of_who_is_parked_itself_counts_nowhere() -> None:
    parked = reply([1.0, 5.0, 5.1], [(1.1, "preempted"), (4.9, "resumed")])
    gaps = split_gaps([parked])
    assert gaps.usual_s == pytest.approx([0.1])
    assert gaps.at_moves_s == ()


def test_gaps_while_prompts_are_read_are_not_usual() -> None:
    early, late = reply([1.0, 2.0, 3.0]), reply([2.5, 2.6])
    assert split_gaps([early, late]).usual_s == pytest.approx([0.1])


def test_a_note_just_beside_a_piece_of_text_is_of_the_same_step() -> None:
    busy = reply([1.0, 1.1, 1.2])
    gaps = split_gaps([busy, reply([1.0], [(1.201, "preempted")])])
    assert gaps.at_moves_s == pytest.approx([0.1])


def test_without_parks_there_is_no_ratio() -> None:
    with pytest.raises(ValueError, match="can be told"):
        _ = split_gaps([reply([1.0, 1.1])]).ratio
