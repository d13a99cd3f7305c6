"""When a sequence has ended by its tokens. Pure; stop strings are text and therefore the runtime's business."""

from __future__ import annotations

from engine.api import FinishReason
from engine.core.types import Sequence


def finish_reason(seq: Sequence, token_id: int | None, limit_tokens: int) -> FinishReason | None:
    """Why `seq` ends after a step in which `token_id` was appended to it (None: its row sampled nothing).

    STOP at a token that ends the reply; LENGTH at `max_new_tokens`, at `limit_tokens` in all, or,
    where no token was asked for, once the prompt is computed.
    """
    if token_id is None:
        return None if seq.num_uncomputed else FinishReason.LENGTH
    if token_id in seq.eos_ids:
        return FinishReason.STOP
    if seq.num_generated >= seq.max_new_tokens or len(seq.token_ids) >= limit_tokens:
        return FinishReason.LENGTH
    return None
