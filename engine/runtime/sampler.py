"""Chooses the next token of one request from one row of logits, and says how likely the model thought it.

Runs on the engine thread, once per sampling row and step. Imports no torch: it takes the row as a numpy array.

The stages, in the order of llama.cpp's default chain:
  what the grammar allows -> logit bias -> repetition, presence and frequency penalties -> DRY
  -> top-k -> typical -> top-p -> min-p -> temperature -> draw
Temperature 0 takes the likeliest token after DRY, the lowest id among equals.

Exact: a token is a function of the parameters, the seed, the tokens so far and the row's values.
All arithmetic is float64 in one order, so neither the row's neighbours nor its place in memory
matter. What only compares, reads the row as it is: that is the same in any format. Most rows are
never read here: what they hold of interest, or the token itself, comes from the kernels (`wish`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import DeviceFailure, EngineError, InvalidRequest
from engine.runtime.sampling_changes import Changed, Floats, LogitChanges
from engine.runtime.sampling_dice import pick, uniform
from engine.runtime.sampling_dry import DryPenalty
from engine.runtime.sampling_filters import likeliest, surviving_tokens
from engine.runtime.sampling_penalties import LogitBias, SeenPenalty
from engine.runtime.sampling_shortlist import draw_among, first_of, likeliest_after
from engine.runtime.token_mask import TokenMask
from kernels.wishes import MOST_LIKELIEST, Found, Likeliest, Wish

_SEED_BITS = 0xFFFF_FFFF_FFFF_FFFF


class SampledToken(NamedTuple):
    """A chosen token. `logprob` and `top` are as asked for: the model's own, before any stage."""

    token_id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    """(token id, natural-log probability), likeliest first, lowest id first among equals; tokens of
    probability 0 are left out."""


class Sampler:
    """One request's way of choosing tokens. A park cannot lose, nor a replay advance, anything.

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
        self._changes = LogitChanges(
            [
                LogitBias(params.logit_bias, vocab_size=vocab_size),
                SeenPenalty(params, vocab_size=vocab_size),
                DryPenalty(params, token_bytes, vocab_size=vocab_size),
            ]
        )
        self._num_wanted = 1 if params.temperature == 0.0 else params.top_k
        """How many of the likeliest tokens it chooses among; 0: all."""
        self._wish = self._make_wish()

    def _make_wish(self) -> Wish:
        params = self._params
        if params.logprobs is not None or not 0 < self._num_wanted <= MOST_LIKELIEST:
            return Wish()
        if not self._changes.are_none:
            return Wish(MOST_LIKELIEST, vocabulary=self._vocab_size)
        if params.typical_p < 1.0 and params.temperature > 0.0:
            return Wish(self._num_wanted, vocabulary=self._vocab_size)
        return Wish(
            num_likeliest=self._num_wanted,
            is_drawn=True,
            vocabulary=self._vocab_size,
            temperature=params.temperature,
            top_p=params.top_p,
            min_p=params.min_p,
            seed=self._seed & _SEED_BITS,
        )

    def wish(self, position: int, mask: TokenMask | None = None) -> Wish:
        """What it would like to be told of the row in which it chooses the token at this position.

        position: the number of tokens so far, forgotten ones included. mask: which tokens may come; None: all.
        """
        wish = self._wish
        if mask is not None and wish.num_likeliest:
            return Wish(*wish[:-2], position, mask.address)
        return Wish(*wish[:-2], position) if wish.is_drawn else wish

    def sample(
        self,
        logits: NDArray[np.floating],
        token_ids: Sequence[int],
        *,
        forgotten: int = 0,
        found: Found = None,
        mask: TokenMask | None = None,
    ) -> SampledToken:
        """The token that follows `token_ids`: prompt, then reply, without `forgotten` tokens of a context shift.

        The number of all of them is the position of the draw, so that no draw comes twice.
        logits: [at least vocab_size], unchanged. NaN counts as -inf, +inf beats all that is finite.
        found: what came of the wish for this row and position; mask: the one that the wish was made with.
        Raises InvalidRequest when logit_bias or the mask forbid every token the model offers, DeviceFailure
        when the model offers none; either concerns this request only.
        """
        if isinstance(found, int):
            return SampledToken(found)
        assert logits.ndim == 1, f"one row, not an array of shape {logits.shape}"
        assert logits.size >= self._vocab_size, f"{logits.size} logits, {self._vocab_size} tokens"
        position = len(token_ids) + forgotten
        whole = row = logits[: self._vocab_size]
        if mask is not None and found is None:
            row = mask.masked(whole)
        # tiny temperatures overflow to -inf and infinite biases may cancel, both on purpose
        with np.errstate(over="ignore", invalid="ignore"):
            changed = self._changes.after(token_ids, row)
            token_id = None if found is None else self._choose_among(found, changed, position)
            if token_id is None:
                token_id = self._choose(row, changed, position, is_masked=mask is not None)
            if self._params.logprobs is None:
                return SampledToken(token_id)
            return self._with_logprobs(token_id, whole)

    def scored(self, token_id: int, logits: NDArray[np.floating]) -> SampledToken:
        """A token that was chosen otherwise, with what `SamplingParams.logprobs` asks for."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._with_logprobs(token_id, logits[: self._vocab_size])

    def _choose_among(self, found: Likeliest, changed: Changed | None, position: int) -> int | None:
        """The token, from the likeliest of the row; None if they do not tell."""
        if changed is None:
            among: Likeliest | None = first_of(found, self._num_wanted)
        else:
            is_all = len(found.ids) < self._wish.num_likeliest
            among = likeliest_after(
                found, changed, self._num_wanted, is_all=is_all, vocab_size=self._vocab_size
            )
        if among is None or among.ids[-1] >= self._vocab_size:
            return None
        if self._params.temperature == 0.0:
            return among.ids[among.ranking[0]]
        return draw_among(among, self._params, seed=self._seed, position=position)

    def _choose(
        self,
        row: NDArray[np.floating],
        changed: Changed | None,
        position: int,
        *,
        is_masked: bool,
    ) -> int:
        """The token, from the whole row."""
        best = int(row.argmax())  # the first of equals, or of NaN
        if changed is not None or not math.isfinite(row[best]):
            floats = np.array(row, dtype=np.float64)
            if changed is not None:
                floats[changed.ids] = changed.logits
            floats = _settle(floats)
            best = int(floats.argmax())
            if floats[best] == -np.inf:
                raise self._nothing_left(row, position, is_masked=is_masked)
            row = floats
        return best if self._params.temperature == 0.0 else self._draw(row, position)

    def _draw(self, row: NDArray[np.floating], position: int) -> int:
        ids = surviving_tokens(row, self._params)
        weights = (row if ids is None else row[ids]).astype(np.float64)
        weights -= weights.max()
        weights /= self._params.temperature
        np.exp(weights, out=weights)
        place = pick(weights, uniform(self._seed, position))
        return place if ids is None else int(ids[place])

    def _with_logprobs(self, token_id: int, logits: NDArray[np.floating]) -> SampledToken:
        row = _settle(np.array(logits, dtype=np.float64))
        row -= row.max()
        row -= np.log(np.exp(row).sum())
        count = self._params.logprobs
        ids = likeliest(row, count) if count else np.array([], dtype=np.intp)
        pairs = zip(ids.tolist(), row[ids].tolist(), strict=True)
        # a stable sort: equal ones stay in ascending order of id
        top = sorted(pairs, key=lambda pair: pair[1], reverse=True)
        return SampledToken(token_id, float(row[token_id]), tuple(top))

    def _nothing_left(
        self, logits: NDArray[np.floating], position: int, *, is_masked: bool
    ) -> EngineError:
        if np.any(logits > -np.inf):
            return InvalidRequest(
                f"logit_bias forbids every token that could come at position {position}; allow at least one",
                param="logit_bias",
            )
        if is_masked:
            return InvalidRequest(
                f"the grammar leaves no token that the model could choose at position {position}; allow more there",
                param="grammar",
            )
        return DeviceFailure(
            f"the model gave no usable number for any of its {self._vocab_size} tokens at position {position}; "
            "load it again, and if that does not help its file is damaged"
        )


def _settle(row: Floats) -> NDArray[np.float64]:
    """The row with every value below +inf: NaN is -inf, and beside a +inf, which is 0 then, all else is -inf."""
    peak = row.max()
    if np.isnan(peak):
        row = np.where(np.isnan(row), -np.inf, row)
        peak = row.max()
    if peak == np.inf:
        row = np.where(row == np.inf, 0.0, -np.inf)
    return row
