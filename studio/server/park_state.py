"""What a snapshot says about parking, in the figures that several routes tell. Pure; server thread."""

from __future__ import annotations

from engine.api import EngineSnapshot
from engine.runs import Run, RunState

MIB = 1 << 20

_IN_TRANSFER = frozenset({RunState.BEING_PARKED, RunState.BEING_RESTORED})


def can_park(snapshot: EngineSnapshot) -> bool:
    """Whether requests are parked when the pool is full."""
    return snapshot.parks.budget_bytes != 0


def budget_mib(snapshot: EngineSnapshot) -> int:
    """The budget as --preempt-ram has it: 0 is off, -1 no limit; a budget below a MiB counts as one."""
    budget = snapshot.parks.budget_bytes
    return budget if budget <= 0 else max(budget // MIB, 1)


def is_in_transfer(run: Run) -> bool:
    """Whether its state is being copied, out or back; its pages are still or already its own."""
    return run.state in _IN_TRANSFER


def is_in_or_out(run: Run) -> bool:
    """Whether it has begun and not ended: it runs or is parked. One that only waits for its owner has ended."""
    return run.state not in (RunState.QUEUED, RunState.AWAITS_OWNER)


def is_preempted(run: Run) -> bool:
    """Whether its pages are with others."""
    return run.state is RunState.PARKED
