"""Every policy orders any two candidates; each has a test of its choice."""

from __future__ import annotations

import pytest

from engine.api import Priority
from engine.core.config import SchedulerConfig
from engine.core.types import Fate, Victim
from engine.core.victim_policies import VICTIM_POLICIES, victim_policy
from fakes.builders import make_sequence


def candidate(arrival: int, priority: Priority = Priority.NORMAL) -> Victim:
    return Victim(make_sequence(arrival=arrival, priority=priority), Fate.RECOMPUTE, pages_freed=1)


@pytest.mark.parametrize("name", sorted(VICTIM_POLICIES))
def test_a_policy_never_ties(name: str) -> None:
    candidates = [candidate(i, priority) for i, priority in enumerate([*Priority, *Priority])]
    assert len({VICTIM_POLICIES[name](one) for one in candidates}) == len(candidates)


def test_fcfs_sends_away_the_newest_of_the_least_important() -> None:
    candidates = [
        candidate(1),
        candidate(4),
        candidate(2, Priority.BACKGROUND),
        candidate(3, Priority.BACKGROUND),
        candidate(5, Priority.INTERACTIVE),
    ]
    order = sorted(candidates, key=VICTIM_POLICIES["fcfs"])
    assert [one.seq.arrival for one in order] == [3, 2, 4, 1, 5]


def test_a_name_can_be_registered_once_only() -> None:
    with pytest.raises(ValueError, match="'fcfs' is already registered"):
        victim_policy("fcfs")(lambda victim: (0,))


def test_the_configuration_refuses_an_unknown_policy_and_names_the_known() -> None:
    with pytest.raises(ValueError, match="victim_policy is 'dice', allowed is fcfs"):
        SchedulerConfig(num_pages=1, victim_policy="dice")
