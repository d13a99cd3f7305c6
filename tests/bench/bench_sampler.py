"""How long one draw takes, beside the usual way of doing it (softmax and sort of the whole row): times and ratios.

The last column is a draw where the kernels have told what it wished for: the likeliest tokens, or the token itself.

Run: python tests/bench/bench_sampler.py [draws]. Not collected by pytest; prints a table.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.runtime.sampler import Sampler
from kernels.wishes import Found, Likeliest, Wish

DEFAULT = SamplingParams()
OPEN = dataclasses.replace(DEFAULT, top_k=0)
ALL_OFF = dataclasses.replace(OPEN, top_p=1.0, min_p=0.0)
PENALTIES = dataclasses.replace(DEFAULT, repetition_penalty=1.1, frequency_penalty=0.2)
DRY = dataclasses.replace(DEFAULT, dry_multiplier=0.8)

Case = tuple[str, SamplingParams, Sequence[int]]


def cases(rng: np.random.Generator, vocab: int) -> list[Case]:
    text = rng.integers(0, vocab, 4096).tolist()
    long_text = rng.integers(0, vocab, 32768).tolist()
    return [
        ("greedy", dataclasses.replace(DEFAULT, temperature=0.0), text),
        ("default", DEFAULT, text),
        ("default, 20 logprobs", dataclasses.replace(DEFAULT, logprobs=20), text),
        ("no top-k", OPEN, text),
        ("no top-k, typical 0.9", dataclasses.replace(OPEN, typical_p=0.9), text),
        ("every filter off", ALL_OFF, text),
        ("penalties, last 64", PENALTIES, text),
        ("penalties, all of 32k", dataclasses.replace(PENALTIES, penalty_last_n=-1), long_text),
        ("DRY, 4k", DRY, text),
        ("DRY, 32k", DRY, long_text),
        ("DRY, 32k of one token", DRY, [5] * 32768),
        ("DRY, 32k in a loop of 50", DRY, list(range(50)) * 655),
    ]


def token_bytes(token_id: int) -> bytes:
    return b" t%d" % token_id


def told(row: NDArray[np.float32], wish: Wish) -> Found:
    """What the kernels tell of a row."""
    order = np.argsort(-row, kind="stable")[: wish.num_likeliest]
    if not order.size:
        return None
    if wish.is_drawn:
        return int(order[0])
    ids = np.sort(order)
    ranking = ids.searchsorted(order).tolist()
    return Likeliest(array("i", ids.tolist()), array("d", row[ids].tolist()), array("i", ranking))


def whole_row_draw(logits: NDArray[np.float32], rng: np.random.Generator) -> int:
    """The yardstick: default parameters by softmax and sort of the whole row."""
    row = logits.astype(np.float64)
    order = np.argsort(-row, kind="stable")[:40]
    weights = np.exp(row[order] - row[order[0]])
    weights = weights[: np.searchsorted(weights.cumsum(), 0.95 * weights.sum()) + 1]
    weights = weights[weights >= 0.05]
    weights **= 1 / 0.8
    return int(order[rng.choice(weights.size, p=weights / weights.sum())])


def median_us(
    draw: Callable[[NDArray[np.float32]], object], rows: list[NDArray[np.float32]]
) -> float:
    times = []
    for row in rows:
        start = time.perf_counter()
        draw(row)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rng = np.random.default_rng(1)
    np.zeros(
        1 << 20
    )  # freed at once, as loading a model frees much: malloc then keeps what rows need
    for vocab in (49_152, 151_936):
        rows = [(rng.standard_normal(vocab) * 3).astype(np.float32) for _ in range(draws)]
        yardstick = median_us(lambda row: whole_row_draw(row, rng), rows)
        print(
            f"\nvocabulary {vocab:,}, {draws} rows, medians   {'us':>8}  of whole-row sort    told: us"
        )
        print(f"{'whole-row sort (default)':<42} {yardstick:8.0f}  1.00")
        for name, params, token_ids in cases(rng, vocab):
            sampler = Sampler(params, seed=1, vocab_size=vocab, token_bytes=token_bytes)
            took = median_us(partial(sampler.sample, token_ids=token_ids), rows)
            wish = sampler.wish(len(token_ids))
            found = iter([told(row, wish) for row in rows])
            quick = median_us(
                lambda row, one=sampler, text=token_ids, found=found: one.sample(  # type: ignore[misc]
                    row, text, found=next(found)
                ),
                rows,
            )
            print(f"{name:<42} {took:8.0f}  {took / yardstick:.2f} {quick:18.0f}")


if __name__ == "__main__":
    main()
