"""Each policy picks whom it says, in whatever order candidates are given, and brings its order of return."""

from __future__ import annotations

from itertools import permutations

import pytest

from engine.core.config import SchedulerConfig
from engine.core.parked import Fate, ParkedState
from engine.core.victim_policies import VICTIM_POLICIES, Candidate, victim_policy
from engine.runs import ParkCause, ParkReason
from fakes.builders import make_family, make_sequence


def candidate(arrival: int, tokens: int, *, own_need: int = 0) -> Candidate:
    """Pages of one token."""
    seq = make_sequence(tokens, arrival=arrival)
    return Candidate((seq,), Fate.SWAP, pages_freed=tokens, own_need=own_need)


CANDIDATES = [candidate(1, 40), candidate(2, 90), candidate(3, 10), candidate(4, 60)]


@pytest.mark.parametrize(
    ("name", "short", "arrival"),
    [
        ("fcfs", 1, 4),
        ("cost", 1, 3),
        ("cost", 50, 4),
        ("cost", 61, 2),
        ("cost", 1000, 3),
        ("smallest", 50, 3),
        ("largest", 1, 2),
        ("youngest", 1, 4),
        ("oldest", 1, 1),
    ],
)
def test_a_policy_picks_whom_it_says(name: str, short: int, arrival: int) -> None:
    pick = VICTIM_POLICIES[name].pick
    assert {pick(order, short).arrival for order in permutations(CANDIDATES)} == {arrival}


def test_cost_takes_one_that_covers_where_the_smallest_would_take_three() -> None:
    candidates = [candidate(1, 3), candidate(2, 3), candidate(3, 3), candidate(4, 8)]
    assert VICTIM_POLICIES["cost"].pick(candidates, 7).arrival == 4


def test_what_a_victim_would_have_taken_in_the_step_counts_as_covered() -> None:
    candidates = [candidate(1, 6, own_need=1), candidate(2, 8)]
    assert VICTIM_POLICIES["cost"].pick(candidates, 7).arrival == 1


@pytest.mark.parametrize("name", sorted(VICTIM_POLICIES))
def test_equals_are_told_apart_by_their_arrival(name: str) -> None:
    twins = [candidate(1, 5), candidate(2, 5)]
    pick = VICTIM_POLICIES[name].pick
    assert pick(twins, 1) is pick(twins[::-1], 1)


@pytest.mark.parametrize(
    ("name", "leader"),
    [("fcfs", 1), ("largest", 1), *((n, 2) for n in ("cost", "smallest", "youngest", "oldest"))],
)
def test_the_leader_is_the_oldest_or_the_one_with_most_tokens(name: str, leader: int) -> None:
    parties = [one.party for one in CANDIDATES]
    assert min(parties, key=VICTIM_POLICIES[name].leader_key)[0].arrival == leader


@pytest.mark.parametrize("name", sorted(VICTIM_POLICIES))
def test_the_order_of_return_is_arrival_for_fcfs_and_else_the_longest_parked_first(
    name: str,
) -> None:
    sequences = []
    for arrival, since_s in ((1, 30.0), (2, 10.0), (3, 20.0)):
        seq = make_sequence(arrival=arrival)
        reason = ParkReason(cause=ParkCause.PAGES_SHORT)
        seq.parked = ParkedState(since_s, 1, Fate.SWAP, reason, 5)
        sequences.append(seq)
    order = [seq.arrival for seq in sorted(sequences, key=VICTIM_POLICIES[name].resume_key)]
    assert order == ([1, 2, 3] if name == "fcfs" else [2, 3, 1])


def test_a_family_counts_all_its_tokens() -> None:
    family = make_family(3, 10)
    assert Candidate(family, Fate.SWAP, pages_freed=1, own_need=0).tokens == 30


def test_a_name_can_be_registered_once_only() -> None:
    with pytest.raises(ValueError, match="'fcfs' is already registered"):
        victim_policy("fcfs")(lambda candidates, short: candidates[0])


def test_the_configuration_refuses_an_unknown_policy_and_names_the_known() -> None:
    known = "cost, fcfs, largest, oldest, smallest, youngest"
    with pytest.raises(ValueError, match=f"victim_policy is 'dice', allowed is {known}"):
        SchedulerConfig(num_pages=1, victim_policy="dice")
