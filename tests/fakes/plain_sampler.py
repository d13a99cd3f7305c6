"""Sampling written down plainly, whole row by whole row and whole text by whole text: what the sampler must give.

Nothing is remembered between calls, nothing is left out of a sort. Slow, for tests only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.runtime.sampling_dice import uniform

Floats = NDArray[np.float64]
FORBIDS = -100.0
LARGEST_POWER = 1e300


def plain_token(
    row: NDArray[np.floating],
    token_ids: Sequence[int],
    params: SamplingParams,
    *,
    position: int,
    token_bytes: Callable[[int], bytes],
) -> int | None:
    """The token that `params` choose after `token_ids` from a row without padding; None where none can come."""
    with np.errstate(over="ignore", invalid="ignore"):
        logits = plain_changes(np.array(row, dtype=np.float64), token_ids, params, token_bytes)
        logits = settled(logits)
        if logits.max() == -np.inf:
            return None
        if params.temperature == 0.0:
            return int(logits.argmax())
        ids = plain_survivors(logits, params)
        weights = np.exp((logits[ids] - logits[ids].max()) / params.temperature)
        ends = weights.cumsum()
        at = ends.searchsorted(uniform(params.seed or 0, position) * ends[-1], side="right")
        return int(ids[at])


def settled(row: Floats) -> Floats:
    """NaN is -inf; beside a +inf, which is 0 then, all else is -inf."""
    row = np.where(np.isnan(row), -np.inf, row)
    return np.where(row == np.inf, 0.0, -np.inf) if row.max() == np.inf else row


def plain_changes(
    row: Floats,
    token_ids: Sequence[int],
    params: SamplingParams,
    token_bytes: Callable[[int], bytes],
) -> Floats:
    """Bias, then penalties, then DRY."""
    biases: dict[int, float] = {}
    for token_id, bias in params.logit_bias:
        biases[token_id] = biases.get(token_id, 0.0) + bias
    for token_id, bias in biases.items():
        row[token_id] = row[token_id] + bias if bias > FORBIDS else -np.inf
    if params.penalty_last_n:
        window = token_ids if params.penalty_last_n < 0 else token_ids[-params.penalty_last_n :]
        for token_id, times in Counter(window).items():
            if token_id < row.size:
                logit, penalty = row[token_id], params.repetition_penalty
                logit = logit / penalty if logit > 0 else logit * penalty
                row[token_id] = logit - params.presence_penalty - times * params.frequency_penalty
    if params.dry_multiplier and params.dry_penalty_last_n:
        last = params.dry_penalty_last_n
        for token_id, lost in plain_dry(
            token_ids if last < 0 else token_ids[-last:], params, token_bytes
        ).items():
            if token_id < row.size:
                row[token_id] -= lost
    return row


def plain_dry(
    window: Sequence[int], params: SamplingParams, token_bytes: Callable[[int], bytes]
) -> dict[int, float]:
    """What DRY takes from each token, by comparing every pair of places of the window."""
    breakers = [text.encode(errors="surrogatepass") for text in params.dry_sequence_breakers]
    texts = [token_bytes(token_id) for token_id in window]
    text = b"".join(texts)
    ends = [at + len(one) for one in breakers if (at := text.rfind(one)) >= 0]
    behind = len(text) - max(ends, default=0)
    limit = 0
    for one in reversed(texts):
        behind -= len(one)
        if behind < 0:
            break
        limit += 1
    longest: dict[int, int] = {}
    for end in range(1, len(window)):
        length = 0
        while length < end and window[end - 1 - length] == window[-1 - length]:
            length += 1
        follower = window[end]
        longest[follower] = max(min(length, limit), longest.get(follower, 0))
    most = int(math.log(LARGEST_POWER) / math.log(params.dry_base)) if params.dry_base > 1 else 0
    return {
        token_id: params.dry_multiplier
        * params.dry_base ** min(length - params.dry_allowed_length, most)
        for token_id, length in longest.items()
        if length >= params.dry_allowed_length
        and not any(one in token_bytes(token_id) for one in breakers)
    }


def plain_survivors(row: Floats, params: SamplingParams) -> NDArray[np.intp]:
    """Top-k, typical, top-p, min-p by sorts of all that is possible; ascending ids."""
    ids = np.flatnonzero(row > -np.inf)
    if params.top_k:
        ids = np.sort(ids[(-row[ids]).argsort(kind="stable")[: params.top_k]])
    if params.typical_p < 1.0:
        ids = ids[plain_typical(row[ids], params.typical_p)]
    logits = row[ids]
    weights = np.exp(logits - logits.max())
    total = weights.sum()
    order = (-logits).argsort(kind="stable")
    kept = order
    if params.top_p < 1.0:
        kept = order[: _count_reaching(weights[order], params.top_p * total)]
    return np.sort(ids[kept[weights[kept] >= params.min_p]])


def plain_typical(logits: Floats, mass: float) -> NDArray[np.intp]:
    """The fewest of most nearly the expected surprise that reach the mass, by a sort of all; ascending."""
    below = logits - logits.max()
    weights = np.exp(below)
    total = weights.sum()
    surprise = math.log(total) - below
    entropy = (weights * surprise).sum() / total
    order = np.abs(surprise - entropy).argsort(kind="stable")
    return np.sort(order[: _count_reaching(weights[order], mass * total)])


def _count_reaching(weights: Floats, target: float) -> int:
    return int(weights.cumsum().searchsorted(target, side="left")) + 1
