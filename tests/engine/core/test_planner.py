"""Who leaves, as a function of candidates: the filters before a policy, and who gives way to a head of the line."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import pytest

from engine.api import Priority
from engine.core.parked import Fate
from engine.core.planner import choose_rotation, choose_victim, leader_of, may_be_rotated
from engine.core.types import Party
from engine.core.victim_policies import VICTIM_POLICIES, Candidate
from fakes.builders import make_sequence

FCFS, SMALLEST = VICTIM_POLICIES["fcfs"], VICTIM_POLICIES["smallest"]


def candidate(
    arrival: int,
    tokens: int = 5,
    *,
    fate: Fate = Fate.SWAP,
    priority: Priority = Priority.NORMAL,
    is_pinned: bool = False,
    num_parks: int = 0,
) -> Candidate:
    """Pages of one token."""
    seq = make_sequence(tokens, arrival=arrival, priority=priority)
    seq.is_pinned, seq.num_parks, seq.num_computed = is_pinned, num_parks, tokens - 1
    return Candidate((seq,), fate, pages_freed=tokens, own_need=0)


def chosen(candidates: Seq[Candidate], policy_name: str = "fcfs") -> int | None:
    policy = VICTIM_POLICIES[policy_name]
    leader = leader_of([c.party for c in candidates], policy)
    assert leader is not None
    victim = choose_victim(candidates, leader, 1, policy)
    return None if victim is None else victim.arrival


# --- ordinary victims


def test_nobody_leads_nobody() -> None:
    assert leader_of([], FCFS) is None


def test_somebody_alone_is_no_victim() -> None:
    assert chosen([candidate(1)]) is None


def test_the_leader_is_spared() -> None:
    assert chosen([candidate(1, 9), candidate(2, 20)], "smallest") == 1
    assert chosen([candidate(1), candidate(2)]) == 2


def test_the_least_important_leave_first() -> None:
    background = candidate(2, priority=Priority.BACKGROUND)
    assert chosen([candidate(1), background, candidate(3)]) == 2


def test_whose_state_can_be_kept_leaves_before_whose_must_be_dropped() -> None:
    dropped = candidate(3, fate=Fate.RECOMPUTE)
    assert chosen([candidate(1), candidate(2), dropped]) == 2
    assert chosen([candidate(1), dropped]) == 3


def test_one_who_has_computed_nothing_yet_loses_nothing() -> None:
    fresh = candidate(3, 1, fate=Fate.RECOMPUTE)
    assert chosen([candidate(1), candidate(2), fresh]) == 3


def test_importance_comes_before_the_fate_of_the_state() -> None:
    background = candidate(2, fate=Fate.RECOMPUTE, priority=Priority.BACKGROUND)
    assert chosen([candidate(1), background, candidate(3)]) == 2


def test_the_pinned_stay_while_anybody_else_can_go_even_the_leader() -> None:
    assert chosen([candidate(1), candidate(2), candidate(3, is_pinned=True)]) == 2
    assert chosen([candidate(1), candidate(2, is_pinned=True)]) == 1


def test_where_all_are_pinned_one_of_them_goes_but_not_the_leader() -> None:
    assert chosen([candidate(i, is_pinned=True) for i in (1, 2, 3)]) == 3


def test_one_parked_three_times_is_passed_over_while_another_can_go() -> None:
    often = candidate(2, 1, num_parks=3)
    assert chosen([candidate(1, 9), often, candidate(3, 4)], "smallest") == 3
    assert chosen([candidate(1, 9), often], "smallest") == 2


def test_the_order_of_arrival_needs_no_such_guard() -> None:
    assert chosen([candidate(1), candidate(2), candidate(3, num_parks=9)]) == 3


# --- rotation


def fits_with(pages: int, candidates: Seq[Candidate]) -> Candidate | None:
    return choose_rotation(candidates, lambda leaving: sum(c.pages_freed for c in leaving) >= pages)


def test_the_smallest_that_lets_the_head_in_gives_way() -> None:
    candidates = [candidate(1, 40), candidate(2, 90), candidate(3, 10)]
    choice = fits_with(30, candidates)
    assert choice is not None
    assert choice.arrival == 1


def test_where_nobody_is_enough_alone_the_largest_gives_way_first() -> None:
    candidates = [candidate(1, 40), candidate(2, 30), candidate(3, 10)]
    choice = fits_with(60, candidates)
    assert choice is not None
    assert choice.arrival == 1


def test_nobody_gives_way_for_nothing() -> None:
    assert fits_with(60, [candidate(1, 40), candidate(3, 10)]) is None
    assert fits_with(0, []) is None


def generating(*, resumed_s: float | None = None, since: int = 0) -> Party:
    seq = make_sequence(4, arrival=1)
    seq.token_ids += [1] * 40
    seq.num_computed = 43
    seq.resumed_s, seq.num_generated_at_resume = resumed_s, 40 - since
    return (seq,)


def rotates(party: Party, *, head_priority: int = Priority.NORMAL, now_s: float = 10.0) -> bool:
    return may_be_rotated(party, head_priority=head_priority, now_s=now_s)


def test_every_generating_resident_may_be_rotated() -> None:
    assert rotates(generating())


def test_a_prompt_in_progress_may_not() -> None:
    reading = make_sequence(4, arrival=1)
    assert not rotates((reading,))


def test_neither_the_pinned_nor_the_more_important_may() -> None:
    party = generating()
    assert not rotates(party, head_priority=Priority.BACKGROUND)
    party[0].is_pinned = True
    assert not rotates(party)


@pytest.mark.parametrize(
    ("tokens", "seconds", "may"),
    [(0, 9.0, False), (1, 1.9, False), (1, 2.0, True), (31, 1.9, False), (32, 0.0, True)],
)
def test_one_that_has_come_back_has_32_tokens_or_one_and_two_seconds(
    tokens: int, seconds: float, *, may: bool
) -> None:
    party = generating(resumed_s=10.0 - seconds, since=tokens)
    assert rotates(party) is may
