"""Chooses the next token of one request from one row of logits, and says how likely the model thought it.

Runs on the engine thread, once per sampling row and step. Imports no torch: it takes the row as a numpy array.

The stages, in the order of llama.cpp's default chain:
  logit bias -> repetition, presence and frequency penalties -> DRY
  -> top-k -> typical -> top-p -> min-p -> temperature -> draw
Temperature 0 takes the likeliest token after DRY, the lowest id among equals.

Exact: a token is a function of the parameters, the seed, the tokens so far and the row's values.
All arithmetic is float64 in one order, on a copy, so neither the row's neighbours nor its place in
memory matter. What only compares, reads the row as it is: that is the same in any format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import DeviceFailure, EngineError, InvalidRequest
from engine.runtime.sampling_dice import pick, uniform
from engine.runtime.sampling_dry import DryPenalty
from engine.runtime.sampling_filters import likeliest, surviving_tokens
from engine.runtime.sampling_penalties import LogitBias, apply_penalties, has_no_penalties
from engine.runtime.sampling_shortlist import draw_among
from kernels.cpu.declarations import MOST_LIKELIEST
from kernels.likeliest import Likeliest


@dataclass(frozen=True, slots=True)
class SampledToken:
    """A chosen token. `logprob` and `top` are as asked for: the model's own, before any stage."""

    token_id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    """(token id, natural-log probability), likeliest first, lowest id first among equals; tokens of
    probability 0 are left out."""


class Sampler:
    """One request's way of choosing tokens. Immutable: a park cannot lose, nor a replay advance, anything.

    `seed` may be any integer (its low 64 bits count). `vocab_size` is the number of ids the tokenizer
    knows; wider rows are padded, and the padding is never chosen. `token_bytes` gives the bytes of any
    id that may stand in the text, control tokens as written out.
    Raises InvalidRequest, naming the field, for parameters that do not fit this vocabulary.
    """

    def __init__(
        self,
        params: SamplingParams,
        *,
        seed: int,
        vocab_size: int,
        token_bytes: Callable[[int], bytes],
    ) -> None:
        self._params = params
        self._seed = seed
        self._vocab_size = vocab_size
        self._bias = LogitBias(params.logit_bias, vocab_size=vocab_size)
        self._dry = DryPenalty(params, token_bytes)
        self._keeps_logits = not params.logit_bias and has_no_penalties(params) and self._dry.is_off
        """Whether no stage before the filters is on."""
        first = 1 if params.temperature == 0.0 else params.top_k
        does = self._keeps_logits and params.logprobs is None and first <= MOST_LIKELIEST
        self.num_likeliest = first if does else 0
        """How many of the likeliest tokens of a row it can do with; 0: it needs the whole row."""

    def sample_among(self, found: Likeliest, position: int) -> SampledToken | None:
        """What `sample` gives, from the `num_likeliest` likeliest tokens of the row; None if padding is among them.

        position: the number of tokens so far, forgotten ones included.
        """
        if found.ids[-1] >= self._vocab_size:
            return None
        if self._params.temperature == 0.0:
            return SampledToken(found.ids[found.ranking[0]])
        return SampledToken(draw_among(found, self._params, seed=self._seed, position=position))

    def sample(
        self, logits: NDArray[np.floating], token_ids: Sequence[int], *, forgotten: int = 0
    ) -> SampledToken:
        """The token that follows `token_ids`: prompt, then reply, without `forgotten` tokens of a context shift.

        The number of all of them is the position of the draw, so that no draw comes twice.
        logits: [at least vocab_size], unchanged. NaN counts as -inf, +inf beats all that is finite.
        Raises InvalidRequest when logit_bias forbids every token the model offers, DeviceFailure
        when the model offers none; either concerns this request only.
        """
        assert logits.ndim == 1, f"one row, not an array of shape {logits.shape}"
        assert logits.size >= self._vocab_size, f"{logits.size} logits, {self._vocab_size} tokens"
        # tiny temperatures overflow to -inf and infinite biases may cancel, both on purpose
        with np.errstate(over="ignore", invalid="ignore"):
            row = logits[: self._vocab_size]
            best = int(row.argmax())  # the first of equals, or of NaN
            if not (self._keeps_logits and math.isfinite(row[best])):
                row = self._change(row, token_ids)
                best = int(row.argmax())
                if row[best] == -np.inf:
                    raise self._nothing_left(logits, len(token_ids))
            token_id = (
                best
                if self._params.temperature == 0.0
                else self._draw(row, len(token_ids) + forgotten)
            )
            if self._params.logprobs is None:
                return SampledToken(token_id)
            return self._with_logprobs(token_id, logits)

    def _change(
        self, logits: NDArray[np.floating], token_ids: Sequence[int]
    ) -> NDArray[np.float64]:
        """What the stages before the filters make of a row."""
        row = np.array(logits, dtype=np.float64)
        self._bias.apply(row)
        apply_penalties(row, token_ids, self._params)
        self._dry.apply(row, token_ids)
        return _settle(row)

    def _draw(self, row: NDArray[np.floating], position: int) -> int:
        ids = surviving_tokens(row, self._params)
        weights = row[ids].astype(np.float64)
        weights -= weights.max()
        weights /= self._params.temperature
        np.exp(weights, out=weights)
        return int(ids[pick(weights, uniform(self._seed, position))])

    def _with_logprobs(self, token_id: int, logits: NDArray[np.floating]) -> SampledToken:
        row = _settle(np.array(logits[: self._vocab_size], dtype=np.float64))
        row -= row.max()
        row -= np.log(np.exp(row).sum())
        count = self._params.logprobs
        ids = likeliest(row, count) if count else np.array([], dtype=np.intp)
        pairs = zip(ids.tolist(), row[ids].tolist(), strict=True)
        # a stable sort: equal ones stay in ascending order of id
        top = sorted(pairs, key=lambda pair: pair[1], reverse=True)
        return SampledToken(token_id, float(row[token_id]), tuple(top))

    def _nothing_left(self, logits: NDArray[np.floating], position: int) -> EngineError:
        if np.any(logits[: self._vocab_size] > -np.inf):
            return InvalidRequest(
                f"logit_bias forbids every token that could come at position {position}; allow at least one",
                param="logit_bias",
            )
        return DeviceFailure(
            f"the model gave no usable number for any of its {self._vocab_size} tokens at position {position}; "
            "load it again, and if that does not help its file is damaged"
        )


def _settle(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The row with every value below +inf: NaN is -inf, and beside a +inf, which is 0 then, all else is -inf."""
    peak = row.max()
    if np.isnan(peak):
        row = np.where(np.isnan(row), -np.inf, row)
        peak = row.max()
    if peak == np.inf:
        row = np.where(row == np.inf, 0.0, -np.inf)
    return row
