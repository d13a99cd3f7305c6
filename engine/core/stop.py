"""When a sequence has ended by its tokens, or has to give up old ones. Pure; stop strings are the runtime's."""

from __future__ import annotations

from engine.api import FinishReason
from engine.core.types import Sequence


def finish_reason(seq: Sequence, token_id: int | None, limit_tokens: int) -> FinishReason | None:
    """Why `seq` ends after a step in which `token_id` was appended to it (None: its row sampled nothing).

    STOP at a token that ends the reply; LENGTH at `max_new_tokens`, at `limit_tokens` in all unless
    its context may be shifted, or, where no token was asked for, once the prompt is computed.
    """
    if token_id is None:
        return None if seq.num_uncomputed else FinishReason.LENGTH
    if token_id in seq.eos_ids:
        return FinishReason.STOP
    is_full = len(seq.token_ids) >= limit_tokens and seq.keep_tokens is None
    if seq.num_generated >= seq.max_new_tokens or is_full:
        return FinishReason.LENGTH
    return None


def shift_context(seq: Sequence) -> None:
    """Drop the older half of what follows the kept beginning; all that is left must be computed anew.

    At its new positions the rest has other keys, so its state is recomputed and is then a function
    of the tokens left alone: parks and prefix hits stay exact after a shift.
    """
    assert seq.keep_tokens is not None
    keep = min(seq.keep_tokens, len(seq.token_ids) // 2)
    dropped = max((len(seq.token_ids) - keep) // 2, 1)
    del seq.token_ids[keep : keep + dropped]
    seq.num_discarded += dropped
    seq.num_computed = 0
