"""How the tokens of one step are shared among the running sequences. Pure: same arguments, same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from engine.core.types import Sequence, StepRow


@dataclass(frozen=True, slots=True)
class StepBudget:
    """What one step may hold."""

    tokens: int
    """In all."""
    beside_replies: int
    """Of prompts that have to be considerate of replies; with 0 these stand still while a reply goes on."""


def share_step(running: Seq[Sequence], budget: StepBudget) -> tuple[StepRow, ...]:
    """Rows of a step. `running` stands in line order, and there are no more than the budget has tokens.

    Whoever needs one token gets it, so no reply waits for another's long prompt. What is left goes
    to prompts, in line order; as there are fewer one-token sequences than tokens while a prompt is
    there, the first prompt always moves, unless none may beside replies.
    """
    room = _Room(running, budget)
    rows = []
    for seq in running:
        count = seq.num_uncomputed
        if count > 1:
            count = room.take(seq, seq.num_wanted)
        if count:
            rows.append(StepRow(seq, seq.num_computed, count))
    return tuple(rows)


def tokens_for_entrant(running: Seq[Sequence], entrant: Sequence, budget: StepBudget) -> int:
    """Tokens that `share_step` would leave for `entrant` if it ran too; 0 or less if others use up the step."""
    before = sum(
        seq.num_wanted
        for seq in running
        if seq.num_uncomputed > 1 and seq.line_key < entrant.line_key
    )
    return _Room(running, budget).for_prompt(entrant) - before


class _Room:
    """What replies leave of a step for prompts.

    A prompt is considerate of replies that were going on when it was asked. One that was asked
    before any of them began, say together with the first of them, has waited for that already: it
    has the whole step. Considerate is also who reads again what was dropped when it was parked.
    """

    def __init__(self, running: Seq[Sequence], budget: StepBudget) -> None:
        replies = [seq for seq in running if seq.num_uncomputed == 1]
        self._tokens = budget.tokens - len(replies)
        self._beside_replies = budget.beside_replies
        self._replies_since_s = min(
            (seq.first_token_s for seq in replies if seq.first_token_s is not None),
            default=math.inf,
        )

    def for_prompt(self, seq: Sequence) -> int:
        """Tokens it may compute, as if it were the next to be served."""
        is_rereading = seq.first_token_s is not None and self._replies_since_s < math.inf
        if is_rereading or seq.arrival_s >= self._replies_since_s:
            return max(min(self._tokens, self._beside_replies), 0)
        return self._tokens

    def take(self, seq: Sequence, count: int) -> int:
        """Serve it: as many of the tokens it wants as it may compute."""
        count = min(count, self.for_prompt(seq))
        self._tokens -= count
        self._beside_replies -= count
        return count
