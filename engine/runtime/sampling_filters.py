"""Filters that keep the likelier tokens: top-k, locally typical, top-p, min-p, one after the other.

Runs on the engine thread, on one row; nothing here depends on other rows or earlier draws. Tokens are
kept in ascending order of id and ties go to the lowest id, so that each result has one definition on
every machine. Imports no torch.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Row = NDArray[np.floating]
"""Read as it is where numbers are only compared; what is calculated with becomes float64."""

_DEPTH = 64
_BINS = 1024
_SORTED = 4096
"""So many tokens are sorted as a whole; more are put into bins first."""


def surviving_tokens(row: Row, params: SamplingParams) -> Indices | None:
    """The ids among which to draw, ascending; at least one. None: all of the row, those that are -inf included.

    row: [vocabulary], below +inf, not all -inf. Each filter sees the probabilities renormalised over
    what the one before it kept. Temperature comes after them and does not change what they keep.
    """
    is_likely_on = params.top_p < 1.0 or params.min_p > 0.0
    ids = None
    if params.top_k:
        ids = likeliest(row, params.top_k)
    elif (params.typical_p < 1.0 or is_likely_on) and row.min() == -np.inf:
        ids = np.flatnonzero(row > -np.inf)
    if params.typical_p < 1.0:
        ids = _among(ids, keep_typical(_floats(row, ids), params.typical_p))
    if is_likely_on:
        kept = keep_likely(_floats(row, ids), top_p=params.top_p, min_p=params.min_p)
        ids = _among(ids, kept)
    return ids


def _floats(row: Row, ids: Indices | None) -> Floats:
    return (row if ids is None else row[ids]).astype(np.float64)


def _among(ids: Indices | None, places: Indices) -> Indices:
    return places if ids is None else ids[places]


def likeliest(row: Row, count: int) -> Indices:
    """The ids of the `count` (at least 1) largest logits above -inf, ascending; fewer if there are fewer."""
    lowest = float(np.finfo(row.dtype).min)
    ids = np.flatnonzero(row >= max(_kth_largest_floor(row, count), lowest))
    if ids.size > count:
        ids = np.sort(ids[_descending(row[ids])[:count]])
    return ids


def keep_typical(logits: Floats, mass: float) -> Indices:
    """Indices, ascending, of the fewest tokens of most nearly the expected surprise that together reach `mass`.

    logits: [n], all finite. Equals go in order. Source: Meister et al., "Locally Typical Sampling" (arXiv 2202.00666).
    """
    below_peak = logits - logits.max()
    weights = np.exp(below_peak)
    total = weights.sum()
    surprise = math.log(total) - below_peak
    entropy = (weights * surprise).sum() / total
    distance = np.subtract(surprise, entropy, out=surprise)
    np.abs(distance, out=distance)
    if logits.size <= _SORTED:
        order = distance.argsort(kind="stable")
        return np.sort(order[: _count_reaching(weights[order], mass * total)])
    # Tokens too unlikely to be missed lie farther than this, and so does the likeliest: the others reach the mass.
    unlikely = math.log(total) - math.log(negligible(mass, total, logits.size))
    enough = max(entropy - math.log(total), unlikely - entropy)
    ids = np.flatnonzero(distance <= enough)
    return ids[_nearest(distance[ids], weights[ids], mass * total)]


def _nearest(distance: Floats, weights: Floats, target: float) -> Indices:
    """Indices, ascending, of the nearest whose weights reach a target; of equals the first. Sorts one bin only."""
    bins = (distance * (_BINS / max(float(distance.max()), 1e-300))).astype(np.intp)
    reached = np.bincount(bins, weights=weights).cumsum()
    last = max(int(reached.searchsorted(target)), int(bins.min()))
    last = min(last, reached.size - 1)
    edge = np.flatnonzero(bins == last)
    edge = edge[distance[edge].argsort(kind="stable")]
    missing = target - (reached[last - 1] if last else 0.0)
    is_kept = bins < last
    is_kept[edge[: _count_reaching(weights[edge], missing)]] = True
    return np.flatnonzero(is_kept)


def keep_likely(logits: Floats, *, top_p: float, min_p: float) -> Indices:
    """Indices, ascending, of what top-p and then min-p leave.

    Top-p keeps the fewest likeliest tokens whose probabilities together reach `top_p`, min-p those with
    at least `min_p` of the likeliest one's probability. Both cut the ranking by probability at some
    place, so the earlier cut counts and what lies behind it need not be sorted.

    logits: [n], all finite. Sources: Holtzman et al., nucleus sampling (arXiv 1904.09751); Nguyen et al.,
    "Turning Up the Heat: Min-p Sampling" (arXiv 2407.01082).
    """
    weights = logits - logits.max()
    np.exp(weights, out=weights)
    total = weights.sum()
    ids = np.flatnonzero(weights >= max(min_p, negligible(top_p, total, logits.size)))
    if top_p < 1.0:
        ids = ids[_descending(logits[ids])]
        ids = np.sort(ids[: _count_reaching(weights[ids], top_p * total)])
    return ids


def negligible(top_p: float, total: float, count: int) -> float:
    """All tokens below this weight together weigh less than what top-p leaves out; half, for rounding."""
    return 0.5 * (1.0 - top_p) * total / count


def _descending(logits: Row) -> Indices:
    """Indices from the largest to the smallest, equal ones in their order."""
    return (-logits).argsort(kind="stable")


def _count_reaching(weights: Floats, target: float) -> int:
    """How many of `weights`, from the first on, it takes to reach `target`; at least 1, all of them if none do."""
    return int(weights.cumsum().searchsorted(target, side="left")) + 1


def _kth_largest_floor(row: Row, k: int) -> float:
    """A value that at least k entries of `row` reach, and usually few more do; -inf if the row is shorter.

    Faster than a partition of the row where it can be: the row is cut into 64 stretches laid under one
    another, and k columns have a maximum not below the k-th largest of the maxima (151,936 entries, k 40,
    AVX-512 Xeon and the same with AVX off: 21 and 31 us against 138 and 471).
    """
    columns = row.size // _DEPTH
    if k <= columns:
        row = row[: columns * _DEPTH].reshape(_DEPTH, columns).max(axis=0)
    if k > row.size:
        return -math.inf
    return float(np.partition(row, row.size - k)[row.size - k])
