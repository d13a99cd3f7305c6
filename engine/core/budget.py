"""How the tokens of one step are shared among the running sequences. Pure: same arguments, same rows."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

from engine.core.types import Sequence, StepRow


@dataclass(frozen=True, slots=True)
class StepBudget:
    """What one step may hold."""

    tokens: int
    """In all."""
    beside_replies: int
    """Of prompts, where a reply goes on in the same step; 0 makes them stand still while one does."""

    def for_prompts(self, num_replies: int) -> int:
        """Tokens left for prompts beside so many replies."""
        left = self.tokens - num_replies
        return min(left, self.beside_replies) if num_replies else left


def share_step(running: Seq[Sequence], budget: StepBudget) -> tuple[StepRow, ...]:
    """Rows of a step. `running` stands in line order, and there are no more than the budget has tokens.

    Whoever needs one token gets it, so no reply waits for another's long prompt. What is left goes
    to prompts, in line order; as there are fewer one-token sequences than tokens while a prompt is
    there, the first prompt always moves, unless none may beside replies.
    """
    wanted = [seq.num_uncomputed for seq in running]
    left = budget.for_prompts(wanted.count(1))
    rows = []
    for seq, count in zip(running, wanted, strict=True):
        if count > 1:
            count = min(count, left)
            left -= count
        if count:
            rows.append(StepRow(seq, seq.num_computed, count))
    return tuple(rows)


def tokens_for_entrant(running: Seq[Sequence], entrant: Sequence, budget: StepBudget) -> int:
    """Tokens that `share_step` would leave for `entrant` if it ran too; 0 or less if others use up the step."""
    num_replies = sum(seq.num_uncomputed == 1 for seq in running)
    before = sum(
        seq.num_uncomputed
        for seq in running
        if seq.num_uncomputed > 1 and seq.line_key < entrant.line_key
    )
    return budget.for_prompts(num_replies) - before
