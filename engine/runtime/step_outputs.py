"""Which of a step's outputs belong to which row, where some rows have more than the one a token is sampled from.

Plain integers; engine thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from engine.core.types import Sequence, StepRow


class OutputRow(NamedTuple):
    """Outputs of some tokens of a prompt, which are wanted for themselves."""

    seq: Sequence
    start: int
    """Position of the first of the tokens."""
    first: int
    """Place of its output among those of the step."""
    num: int


def rows_to_read(rows: Iterable[StepRow]) -> tuple[OutputRow, ...]:
    """Those rows whose outputs are wanted for themselves; mostly none."""
    found, first = [], 0
    for row in rows:
        count = row.num_outputs
        if count and row.seq.is_being_read:
            found.append(OutputRow(row.seq, row.start + row.count - count, first, count))
        first += count
    return tuple(found)


def last_outputs(rows: Iterable[StepRow]) -> list[int]:
    """The place of the output that each sampling row samples from, in their order."""
    rows = tuple(rows)
    ends = accumulate(row.num_outputs for row in rows)
    return [end - 1 for row, end in zip(rows, ends, strict=True) if row.samples]
