"""How the tokens of one step are shared among the running sequences. Pure: same arguments, same rows."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from engine.core.types import Sequence, StepRow


def share_step(running: Seq[Sequence], step_tokens: int) -> tuple[StepRow, ...]:
    """Rows of a step of at most `step_tokens` tokens. `running` stands in line order, and there are no more than that.

    Whoever needs one token gets it, so no reply waits for another's long prompt. What is left goes
    to prompts, in line order; as there are fewer one-token sequences than tokens while a prompt is
    there, the first prompt always moves.
    """
    wanted = [seq.num_uncomputed for seq in running]
    left = step_tokens - wanted.count(1)
    rows = []
    for seq, count in zip(running, wanted, strict=True):
        if count > 1:
            count = min(count, left)
            left -= count
        if count:
            rows.append(StepRow(seq, seq.num_computed, count))
    return tuple(rows)


def tokens_for_entrant(running: Seq[Sequence], entrant: Sequence, step_tokens: int) -> int:
    """Tokens that `share_step` would leave for `entrant` if it ran too; 0 or less if others use up the step."""
    taken = 0
    for seq in running:
        if seq.num_uncomputed == 1:
            taken += 1
        elif seq.line_key < entrant.line_key:
            taken += seq.num_uncomputed
    return step_tokens - taken
