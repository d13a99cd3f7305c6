"""Changes, filters and draw on the likeliest tokens alone, where a back end has found them: what the whole row gives.

Runs on the engine thread. The same numbers in the same order as `sampling_filters` and `sampling_dice` take them from
a whole row, so every result is the same to the last bit; they are few enough for plain loops around one call of numpy,
whose exponentials they need. Imports no torch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, takewhile

import numpy as np

from engine.api import SamplingParams
from engine.runtime.sampling_changes import Changed
from engine.runtime.sampling_dice import pick, uniform
from engine.runtime.sampling_filters import keep_likely, keep_typical, negligible
from kernels.wishes import Likeliest


def first_of(found: Likeliest, count: int) -> Likeliest:
    """The `count` likeliest of those found."""
    if len(found.ids) <= count:
        return found
    ranking = found.ranking[:count]
    places = sorted(ranking)
    rank = {place: index for index, place in enumerate(places)}
    return Likeliest(
        array("i", [found.ids[place] for place in places]),
        array("d", [found.logits[place] for place in places]),
        array("i", [rank[place] for place in ranking]),
    )


def likeliest_after(
    found: Likeliest, changed: Changed, count: int, *, is_all: bool, vocab_size: int
) -> Likeliest | None:
    """The `count` likeliest tokens of a row some of whose logits are changed; None where `found` does not tell.

    found: the likeliest of the row as it was, `is_all` if that is every token above -inf. Any token that is neither in
    it nor changed comes after the last of it. So where `count` of the known ones come no later than that, no unknown
    one is among the likeliest.
    """
    if not (changed.logits < np.inf).all():
        return None  # infinite, or no number
    listed, logits = np.frombuffer(found.ids, np.int32), np.frombuffer(found.logits)
    last = found.ranking[-1]
    places = changed.ids.searchsorted(listed)
    places[places == changed.ids.size] = 0
    is_kept = (changed.ids[places] != listed) & (listed < vocab_size)
    floor = (
        np.finfo(np.float64).min if is_all else found.logits[last]
    )  # below that they do not count
    is_possible = changed.logits >= floor
    ids = np.concatenate([listed[is_kept], changed.ids[is_possible]])
    logits = np.concatenate([logits[is_kept], changed.logits[is_possible]])
    order = np.lexsort((ids, -logits))[:count]
    if not order.size:
        return None
    weakest = order[-1]
    comes_before = (-logits[weakest], ids[weakest]) <= (-found.logits[last], found.ids[last])
    if not is_all and not (order.size == count and comes_before):
        return None
    ascending = order[ids[order].argsort()]
    ranking = ids[ascending].searchsorted(ids[order])
    return Likeliest(
        array("i", ids[ascending].tolist()),
        array("d", logits[ascending].tolist()),
        array("i", ranking.tolist()),
    )


def draw_among(found: Likeliest, params: SamplingParams, *, seed: int, position: int) -> int:
    """The id drawn from the `top_k` likeliest tokens at a temperature above 0."""
    if params.typical_p < 1.0:
        return _draw_typical(found, params, seed=seed, position=position)
    ranking, logits = found.ranking.tolist(), found.logits.tolist()
    peak, temperature, count = logits[ranking[0]], params.temperature, len(logits)
    below = [logit - peak for logit in logits]
    exponentials = np.exp([*below, *(one / temperature for one in below)])
    weights: list[float] = exponentials.tolist()
    places = sorted(_likely(ranking, weights, float(np.add.reduce(exponentials[:count])), params))
    if len(places) == 1:
        return found.ids[places[0]]
    ends = list(accumulate(weights[count + place] for place in places))
    return found.ids[places[bisect_right(ends, uniform(seed, position) * ends[-1])]]


def _likely(
    ranking: list[int], weights: list[float], total: float, params: SamplingParams
) -> list[int]:
    """As `keep_likely`: what top-p and min-p leave of a ranking. `weights` [more than there are] sum up to `total`."""
    least = max(params.min_p, negligible(params.top_p, total, len(ranking)))
    kept = [place for place in ranking if weights[place] >= least]
    if params.top_p < 1.0:
        reached = accumulate(weights[place] for place in kept)
        target = params.top_p * total
        kept = kept[: sum(1 for _ in takewhile(target.__gt__, reached)) + 1]
    return kept


def _draw_typical(found: Likeliest, params: SamplingParams, *, seed: int, position: int) -> int:
    logits = np.array(found.logits)
    typical = keep_typical(logits, params.typical_p)
    likely = keep_likely(logits[typical], top_p=params.top_p, min_p=params.min_p)
    places: list[int] = typical[likely].tolist()
    kept = [found.logits[place] for place in places]
    peak = max(kept)
    weights = np.exp([(logit - peak) / params.temperature for logit in kept])
    return found.ids[places[pick(weights, uniform(seed, position))]]
