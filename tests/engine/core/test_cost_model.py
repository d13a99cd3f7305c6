"""Prices follow from the figures given, and a wait is told as a range that holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.cost_model import Calibration, CostModel, Outlook, Resident, expected_wait_s

ROUND = Calibration(
    step_s=0.01,
    decode_token_s=0.002,
    prefill_token_s=0.001,
    context_token_s=1e-5,
    token_bytes=1000,
    copy_out_bytes_s=1e6,
    copy_in_bytes_s=2e6,
    park_s=1e-6,
)
MODEL = CostModel(ROUND)


def test_a_step_costs_its_floor_and_each_token_by_its_kind_and_place() -> None:
    assert MODEL.step_s([]) == 0.0
    assert MODEL.step_s([(0, 1)]) == pytest.approx(0.01 + 0.002)
    assert MODEL.step_s([(0, 100)]) == pytest.approx(0.01 + 0.1)
    assert MODEL.step_s([(500, 1), (0, 1)]) == pytest.approx(0.01 + 2 * 0.002 + 0.005)


def test_a_copied_park_costs_its_bytes_and_one_in_place_next_to_nothing() -> None:
    assert MODEL.state_bytes(3000) == 3_000_000
    assert MODEL.park_s(3000, is_copied=True) == pytest.approx(3.0, abs=1e-5)
    assert MODEL.restore_s(3000, is_copied=True) == pytest.approx(1.5, abs=1e-5)
    assert MODEL.park_s(3000, is_copied=False) == MODEL.restore_s(9, is_copied=False) == 1e-6


def test_a_recompute_costs_its_steps() -> None:
    assert MODEL.recompute_s(0, 256) == 0.0
    expected = (0.01 + 0.2) + (0.01 + 100 * (0.001 + 200 * 1e-5))
    assert MODEL.recompute_s(300, 200) == pytest.approx(expected)


def test_figures_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="park_s is 0, it must be above 0"):
        Calibration(park_s=0)
    with pytest.raises(ValueError, match="step_s is nan"):
        Calibration(step_s=float("nan"))
    with pytest.raises(ValueError, match="tokens_s is 0, it must be above 0"):
        expected_wait_s(Outlook(pages_lacking=1), tokens_s=0)


def test_one_that_lacks_nothing_enters_at_once() -> None:
    outlook = Outlook(pages_lacking=0, residents=(Resident(4, 10),), turns_s=(2.0,))
    assert expected_wait_s(outlook, tokens_s=10) == (0, 0)


def test_the_ends_of_enough_residents_are_waited_for_give_or_take_half() -> None:
    residents = (Resident(4, 100), Resident(4, 50), Resident(90, 1000))
    outlook = Outlook(pages_lacking=8, residents=residents)
    assert expected_wait_s(outlook, tokens_s=10) == (0.0, 15.0)
    assert expected_wait_s(replace(outlook, pages_lacking=4), tokens_s=10) == (0.0, 7.5)
    near = expected_wait_s(replace(outlook, turns_s=(30.0,)), tokens_s=10)
    assert near == (pytest.approx(10 / 1.5), 15.0)


def test_where_residents_give_way_the_turn_comes_first() -> None:
    outlook = Outlook(pages_lacking=8, residents=(Resident(9, 5000),), turns_s=(2.0,))
    assert expected_wait_s(outlook, tokens_s=10) == (2.0, 4.0)
    assert expected_wait_s(outlook, tokens_s=64) == (2.0, 2.5), "32 tokens are enough of a turn"


def test_further_back_in_line_the_turn_comes_later_and_an_end_may_be_of_no_use() -> None:
    outlook = Outlook(pages_lacking=8, residents=(Resident(10, 5000),), turns_s=(1.0, 2.0, 0.0))
    assert expected_wait_s(outlook, tokens_s=10) == (2.0, 7.0)
    assert expected_wait_s(replace(outlook, residents=(Resident(10, 15),)), tokens_s=10) == (
        1.0,
        7.0,
    )


def test_seats_are_waited_for_like_pages() -> None:
    residents = (Resident(4, 100), Resident(4, 50))
    outlook = Outlook(pages_lacking=0, seats_lacking=2, residents=residents)
    assert expected_wait_s(outlook, tokens_s=10) == (0.0, 15.0)
    behind = replace(outlook, seats_lacking=3, ahead_tokens=80)
    assert expected_wait_s(behind, tokens_s=10) == (0.0, 27.0)
