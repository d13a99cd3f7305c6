"""Changes to the logits of single tokens: the request's own bias, and penalties for tokens already seen.

Runs on the engine thread, in place on one float64 row of logits. Every change is a function of the parameters and the
tokens so far. Imports no torch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import InvalidRequest

_FORBIDS = -100.0
"""A bias of this or less forbids the token, as clients of the OpenAI API mean it."""


class LogitBias:
    """What a request adds to the logits of tokens it names; the biases of an id given twice are summed.

    Raises InvalidRequest, naming the id, when an id is outside the vocabulary or its bias is not a number.
    """

    def __init__(self, pairs: Sequence[tuple[int, float]], *, vocab_size: int) -> None:
        biases: dict[int, float] = {}
        for token_id, bias in pairs:
            biases[token_id] = biases.get(token_id, 0.0) + bias
        for token_id, bias in biases.items():
            _check(token_id, bias, vocab_size)
        added = {token_id: bias for token_id, bias in biases.items() if bias > _FORBIDS}
        self._ids = np.array(list(added), dtype=np.intp)
        self._values = np.array(list(added.values()), dtype=np.float64)
        self._forbidden = np.array([i for i in biases if i not in added], dtype=np.intp)

    def apply(self, row: NDArray[np.float64]) -> None:
        """Add the biases; forbidden tokens become -inf."""
        row[self._ids] += self._values
        row[self._forbidden] = -np.inf


def has_no_penalties(params: SamplingParams) -> bool:
    """Whether `apply_penalties` does nothing."""
    is_off = (
        params.repetition_penalty == 1.0
        and params.presence_penalty == 0.0
        and params.frequency_penalty == 0.0
    )
    return is_off or params.penalty_last_n == 0


def apply_penalties(
    row: NDArray[np.float64], token_ids: Sequence[int], params: SamplingParams
) -> None:
    """Make tokens among the last `penalty_last_n` less likely (likelier, where a penalty is reversed).

    First repetition: positive logits are divided by the penalty, the others multiplied. Then presence
    is subtracted once and frequency per occurrence. Prompt and reply count alike.

    Source: repetition after CTRL (arXiv 1909.05858), with the sign rule that came into use later, since
    dividing a negative logit would reward the token; the others after the OpenAI API reference.
    """
    if has_no_penalties(params):
        return
    counts = Counter(last_tokens(token_ids, params.penalty_last_n))
    ids = np.fromiter(counts.keys(), np.intp, len(counts))
    times = np.fromiter(counts.values(), np.float64, len(counts))
    in_row = ids < row.size  # a prompt may hold ids of columns that are only padding
    ids, times = ids[in_row], times[in_row]
    logits = row[ids]
    logits = np.where(
        logits > 0, logits / params.repetition_penalty, logits * params.repetition_penalty
    )
    row[ids] = logits - params.presence_penalty - times * params.frequency_penalty


def last_tokens(token_ids: Sequence[int], count: int) -> Sequence[int]:
    """The newest `count` (at least 1) tokens in order, or all of them for -1."""
    return token_ids if count < 0 else token_ids[-count:]


def _check(token_id: int, bias: float, vocab_size: int) -> None:
    if not 0 <= token_id < vocab_size:
        raise InvalidRequest(
            f"logit_bias names token id {token_id}, this model has ids 0 to {vocab_size - 1}; leave it out",
            param="logit_bias",
        )
    if math.isnan(bias):
        raise InvalidRequest(
            f"logit_bias for token id {token_id} is not a number; give one from -100 to 100",
            param="logit_bias",
        )
