"""From the scheduler's rows to what a compiled program takes, token by token. Plain integers; engine thread."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.types import StepRow
from kernels.api import StepInputs
from kernels.wishes import Wish


def make_step_inputs(rows: Sequence[StepRow], wishes: Sequence[Wish] = ()) -> StepInputs:
    """The tokens of all rows in order; outputs are wanted of the last `num_outputs` of each row.

    `wishes` as in `StepInputs`.
    """
    token_ids: list[int] = []
    positions: list[int] = []
    sequences: list[int] = []
    outputs: list[int] = []
    for index, row in enumerate(rows):
        stop = row.start + row.count
        token_ids += row.seq.token_ids[row.start : stop]
        positions += range(row.start, stop)
        sequences += [index] * row.count
        outputs += range(len(token_ids) - row.num_outputs, len(token_ids))
    tables = [row.seq.page_table for row in rows]
    return StepInputs(token_ids, positions, sequences, tables, outputs, wishes)
