"""Changes to the logits of single tokens: the request's own bias, and penalties for tokens already seen.

Runs on the engine thread. Every change is a function of the parameters and the tokens so far. Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from engine.runtime.sampling_changes import Floats, Touch
from engine.runtime.sampling_text import TextSoFar, Tokens

_FORBIDS = -100.0
"""A bias of this or less forbids the token, as clients of the OpenAI API mean it."""
_FEW = 512
"""A window of so many tokens is read anew at every call: that is quicker than to remember the text."""


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
        values = np.array([biases[i] for i in sorted(biases)], dtype=np.float64)
        self._is_forbidden = values <= _FORBIDS
        self._biases = np.where(self._is_forbidden, 0.0, values)
        self._touch = Touch(np.array(sorted(biases), dtype=np.intp), self._add)

    @property
    def is_off(self) -> bool:
        """Whether no token is named."""
        return not self._biases.size

    def touch(self, token_ids: Sequence[int]) -> Touch:
        """Adds the biases; forbidden tokens become -inf."""
        return self._touch

    def _add(self, logits: Floats) -> Floats:
        return np.where(self._is_forbidden, -np.inf, logits + self._biases)


class SeenPenalty:
    """Makes tokens among the last `penalty_last_n` less likely (likelier, where a penalty is reversed).

    First repetition: positive logits are divided by the penalty, the others multiplied. Then presence
    is subtracted once and frequency per occurrence. Prompt and reply count alike.

    Source: repetition after CTRL (arXiv 1909.05858), with the sign rule that came into use later, since
    dividing a negative logit would reward the token; the others after the OpenAI API reference.
    """

    def __init__(self, params: SamplingParams, *, vocab_size: int) -> None:
        self._params = params
        self._vocab_size = vocab_size
        self._text = TextSoFar()

    @property
    def is_off(self) -> bool:
        """Whether `touch` never gives anything."""
        params = self._params
        is_neutral = (
            params.repetition_penalty == 1.0
            and params.presence_penalty == 0.0
            and params.frequency_penalty == 0.0
        )
        return is_neutral or params.penalty_last_n == 0

    def touch(self, token_ids: Sequence[int]) -> Touch | None:
        """Penalises the tokens seen."""
        ids, times = np.unique(self._window(token_ids), return_counts=True)
        # a prompt may hold ids of columns that are only padding
        known = int(ids.searchsorted(self._vocab_size))
        if not known:
            return None
        params, times = self._params, times[:known]

        def penalise(logits: Floats) -> Floats:
            penalty = params.repetition_penalty
            repeated = np.where(logits > 0, logits / penalty, logits * penalty)
            return repeated - params.presence_penalty - times * params.frequency_penalty

        return Touch(ids[:known], penalise)

    def _window(self, token_ids: Sequence[int]) -> Tokens:
        last = self._params.penalty_last_n
        if 0 < last <= _FEW:
            return np.array(token_ids[-last:], np.int32)
        self._text.follow(token_ids)
        return self._text.tokens if last < 0 else self._text.tokens[-last:]


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
