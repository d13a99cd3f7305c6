"""The comparison that `layby simulate` prints: repeatable, and in the direction of what was measured elsewhere."""

from __future__ import annotations

import pytest

from engine.sim.matrix import Case, all_cases, simulate
from engine.sim.traces import Shape

BUSY = Case(shape=Shape.MEASURED, num_chats=8, pool_tokens=8192)
SMALL = Case(shape=Shape.UNIFORM, num_chats=4, pool_tokens=8192)


def test_the_matrix_has_every_shape_count_and_pool_once() -> None:
    cases = all_cases()
    assert len(set(cases)) == len(cases) == 12
    assert {(case.num_chats, case.pool_tokens) for case in cases} == {
        (4, 8192), (4, 16384), (8, 8192), (8, 16384),
    }  # fmt: skip


def test_the_same_arguments_give_the_same_row() -> None:
    assert simulate(SMALL, "cost", "head", num_seeds=2) == simulate(
        SMALL, "cost", "head", num_seeds=2
    )


def test_an_overflowing_pool_parks_and_copies_and_loses_no_token() -> None:
    outcome = simulate(SMALL, "fcfs", "head", num_seeds=1).outcome
    assert outcome.parks > 0
    assert outcome.tokens_copied > 0
    assert outcome.tokens_recomputed == 0
    roomy = Case(shape=SMALL.shape, num_chats=4, pool_tokens=1 << 17)
    assert simulate(roomy, "fcfs", "head", num_seeds=1).outcome.parks == 0


def test_head_of_line_halves_the_longest_wait_of_eight_chats_at_no_cost() -> None:
    head, passing = (
        simulate(BUSY, "fcfs", order, num_seeds=1).outcome for order in ("head", "pass")
    )
    assert head.longest_wait_s <= passing.longest_wait_s / 2
    assert head.makespan_s <= passing.makespan_s * 1.06


@pytest.mark.parametrize(("policy", "order"), [("fair", "head"), ("fcfs", "tail")])
def test_unknown_names_are_refused(policy: str, order: str) -> None:
    with pytest.raises(ValueError, match=r"fair|tail"):
        simulate(SMALL, policy, order, num_seeds=1)
