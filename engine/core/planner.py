"""Decides who leaves the pool when the pages of a step are short. Pure: same arguments, same plan.

Called by the Scheduler, at most once a step and before anything of the step is carried out. The
plan is data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Sequence as Seq

from engine.core.kv_pool import KVPool
from engine.core.types import Fate, PreemptPlan, Sequence, Victim
from engine.core.victim_policies import VictimPolicy


def plan_preemption(
    running: Seq[Sequence], needs: Mapping[Sequence, int], pool: KVPool, policy: VictimPolicy
) -> PreemptPlan | None:
    """Victims that make room for `needs`, the new pages that running sequences take in this step. Changes nothing.

    None if there is room, or nobody who may leave. `running` stands in line order; its first, the
    leader, is never a victim, so somebody always advances. A victim's own need goes with it. If all
    but the leader leave, the leader has the pool to itself, and fits.
    """
    usable = pool.num_usable
    needed = sum(needs.values())
    short = needed - usable
    if short <= 0:
        return None
    candidates = [
        Victim(seq, Fate.RECOMPUTE, _pages_freed(seq, pool, Counter())) for seq in running[1:]
    ]
    victims: list[Victim] = []
    leaving: Counter[int] = Counter()
    for candidate in sorted(candidates, key=policy):
        if short <= 0:
            break
        seq = candidate.seq
        victim = Victim(seq, candidate.fate, _pages_freed(seq, pool, leaving))
        leaving.update(seq.page_table)
        victims.append(victim)
        short -= victim.pages_freed + needs.get(seq, 0)
    if not victims:
        return None
    return PreemptPlan(
        victims=tuple(victims),
        pages_needed=needed,
        pages_freed=sum(victim.pages_freed for victim in victims),
        reason=f"the step needs {needed} new pages, {usable} are free or reusable",
    )


def _pages_freed(seq: Sequence, pool: KVPool, leaving: Mapping[int, int]) -> int:
    """Pages that nobody uses once `seq` has left, after the users counted in `leaving` (page -> how many)."""
    return sum(pool.ref_count(page) == leaving.get(page, 0) + 1 for page in seq.page_table)
