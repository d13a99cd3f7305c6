"""The usual step, planned in one look: everybody alive writes a reply, one token each, on pages that are there.

Nine steps of ten are like that, and each part of a whole plan would find in its turn that it has nothing to do.
Part of the Scheduler (engine thread); imports no tensor library, clock or thread.
"""

from __future__ import annotations

from engine.core.room import runway
from engine.core.types import StepRow
from engine.core.yard import Yard


def steady_rows(yard: Yard) -> tuple[StepRow, ...] | None:
    """The rows of a step for which nothing is to be decided, moved, taken or given back; None where something may be.

    A whole plan without knobs would come to the same rows and change nothing else.
    """
    running, pool, config = yard.running, yard.pool, yard.config
    if not running or len(running) != yard.lines.num_live or yard.has_wishes:
        return None
    if not (yard.keeper.is_quiet and yard.moves.is_empty) or pool.has_cold:
        return None
    if config.park.is_async and runway(yard) > pool.num_usable:
        return None
    rows = []
    for seq in running:
        start = seq.num_computed
        is_there = start < len(seq.page_table) * config.page_tokens
        if not is_there or len(seq.token_ids) != start + 1 or seq.family is not None:
            return None
        if seq.num_read < seq.read_until:
            return None
        row = StepRow(seq, start, 1)
        if not row.samples:
            return None
        rows.append(row)
    return tuple(rows)
