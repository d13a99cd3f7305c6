"""The usual step, planned in one look: everybody in the pool writes a reply, one token each, on pages that are there.

Nine steps of ten are like that, and each part of a whole plan would find in its turn that it has nothing to do.
Part of the Scheduler (engine thread); imports no tensor library, clock or thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.admission import Admission
from engine.core.room import runway
from engine.core.types import SeqStatus, StepRow
from engine.core.yard import Yard
from engine.runs import WaitKind

_STILL_S = 0.05
"""An answer to those outside holds for so long: what time alone changes for them may come so much later."""
_LACKS = frozenset({WaitKind.NO_ROOM, WaitKind.WOULD_NOT_LAST, WaitKind.NO_SEAT})
"""What somebody waits for until somebody else leaves, or time is up."""


@dataclass(frozen=True, slots=True)
class Still:
    """Others are outside the pool, and a whole plan has found that none of them can enter as things are."""

    until_s: float
    num_live: int
    num_running: int
    num_usable: int

    def holds(self, yard: Yard, now_s: float) -> bool:
        """Whether things are as they were: nobody has come, left or ended, and no page has changed hands."""
        return (
            now_s < self.until_s
            and yard.lines.num_live == self.num_live
            and len(yard.running) == self.num_running
            and yard.pool.num_usable == self.num_usable
        )


def find_still(yard: Yard, admission: Admission | None) -> Still | None:
    """To be asked after a whole plan; `admission` is its last answer to a head of the line. None: it may change."""
    lines, pool = yard.lines, yard.pool
    num_in_line = len(lines[SeqStatus.PARKED]) + len(lines[SeqStatus.WAITING])
    if not num_in_line or len(yard.running) + num_in_line != lines.num_live:
        return None
    if admission is None or admission.waits_for not in _LACKS or pool.num_stranded:
        return None
    until_s = yard.now_s + _STILL_S
    return Still(until_s, lines.num_live, len(yard.running), pool.num_usable)


def steady_rows(yard: Yard, still: Still | None, now_s: float) -> tuple[StepRow, ...] | None:
    """The rows of a step for which nothing is to be decided, moved, taken or given back; None where something may be.

    A whole plan without knobs would come to the same rows and change nothing else; with others outside the pool, it
    would have a moment ago.
    """
    running, pool, config = yard.running, yard.pool, yard.config
    if not running or yard.has_wishes:
        return None
    if len(running) != yard.lines.num_live and not (still and still.holds(yard, now_s)):
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
