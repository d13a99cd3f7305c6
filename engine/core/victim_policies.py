"""The order in which sequences are asked to leave the pool: one decorated function a policy.

Pure: each policy is a sort key over candidates, smallest leaves first. The leader is no candidate,
so a policy never sees it. A new policy is one function here; the settings, the configuration's
check and the fuzz find it in the registry.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.core.types import Victim

VictimPolicy = Callable[[Victim], tuple[int, ...]]
"""Sort key of a candidate; must order any two sequences, so that the same state gives the same plan."""

VICTIM_POLICIES: dict[str, VictimPolicy] = {}


def victim_policy(name: str) -> Callable[[VictimPolicy], VictimPolicy]:
    """Register the decorated sort key under `name`. Raises ValueError if the name is taken."""

    def register(policy: VictimPolicy) -> VictimPolicy:
        if name in VICTIM_POLICIES:
            raise ValueError(f"victim policy {name!r} is already registered")
        VICTIM_POLICIES[name] = policy
        return policy

    return register


@victim_policy("fcfs")
def newest_first(victim: Victim) -> tuple[int, ...]:
    """First come, first served: the least important sequences leave, the newest of them first."""
    return (-victim.seq.priority, -victim.seq.arrival)
