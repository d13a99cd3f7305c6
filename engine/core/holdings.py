"""Who holds which share of the pool, as data for a picture of it. Pure; changes nothing.

Pages are shared by prefix alone: who lists another's page lists all before it too. So the tables form a tree, and where
two of them part is found by bisection, whatever their length. Engine thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from engine.core.kv_pool import KVPool
from engine.core.types import Sequence
from engine.runs import Holding


def holdings(owners: Iterable[Sequence]) -> tuple[Holding, ...]:
    """The pages that sequences in the pool list, each page in one holding, in the order of arrival.

    What several share comes before what each of them has alone.
    """
    ordered = sorted((seq for seq in owners if seq.page_table), key=lambda seq: seq.arrival)
    found: list[Holding] = []
    _walk(ordered, 0, found)
    return tuple(found)


def num_kept(pool: KVPool, seq: Sequence) -> int:
    """Pages kept outside the pool's account for a parked sequence; those that others use are not among them."""
    table = seq.page_table
    first = bisect_left(range(len(table)), 1, key=lambda at: pool.user_count(table[at]) == 0)
    return len(table) - first + len(seq.saved)


def _walk(owners: list[Sequence], depth: int, found: list[Holding]) -> None:
    """Add what these list from `depth` on; up to there they all list the same."""
    groups: dict[int, list[Sequence]] = {}
    for seq in owners:
        if len(seq.page_table) > depth:
            groups.setdefault(seq.page_table[depth], []).append(seq)
    for group in groups.values():
        end = _common_end(group, depth)
        ids = tuple(seq.request_id for seq in group)
        found.append(Holding(request_ids=ids, pages=end - depth))
        if len(group) > 1:
            _walk(group, end, found)


def _common_end(group: list[Sequence], depth: int) -> int:
    """How far all tables of a group are the same; beyond `depth`, where they are."""
    first, *others = (seq.page_table for seq in group)
    end = len(first)
    for table in others:
        reach = range(depth, min(end, len(table)))
        end = depth + bisect_left(reach, 1, key=lambda at, t=table: first[at] != t[at])  # type: ignore[misc]
    return end
