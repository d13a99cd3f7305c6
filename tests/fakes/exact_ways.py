"""The ways in which a model can be run that must not change a bit of what a sequence gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.runtime.model_runner import ModelRunner
from fakes.runner_driver import Parks, Reply, generate

PROMPT_TOKENS = 259
"""The prompt ends just beyond a piece of 256, the continuation too."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is generated, and how often those are parked that are."""

    new_tokens: int
    park_every: int
    first_chunk: int = 1
    """What is read in one step where the rest of the prompt is read token by token."""


SHORT = Size(new_tokens=6, park_every=2)
SLOW = Size(new_tokens=6, park_every=2, first_chunk=220)
"""For a model whose steps take long: what comes token by token still ends beyond a piece."""
WHOLE = Size(new_tokens=26, park_every=8)


def _tokens(seed: int, count: int = PROMPT_TOKENS) -> list[int]:
    return np.random.default_rng(seed).integers(3, 270, count).tolist()


def _alone(runner: ModelRunner, size: Size, *, chunk: int) -> Reply:
    return generate(runner, [_tokens(0)], new_tokens=size.new_tokens, chunk=chunk)[0]


def _token_by_token(runner: ModelRunner, size: Size) -> Reply:
    prompts, first = [_tokens(0)], size.first_chunk
    return generate(runner, prompts, new_tokens=size.new_tokens, chunk=1, first_chunk=first)[0]


def _beside_others(runner: ModelRunner, size: Size, *, chunk: int) -> Reply:
    """Third of four; the others begin and end at other times."""
    prompts = [_tokens(1, 5), _tokens(2, 120), _tokens(0), _tokens(3, 300)]
    return generate(runner, prompts, new_tokens=size.new_tokens, chunk=chunk)[2]


def _beside_its_own_prompt(runner: ModelRunner, size: Size) -> Reply:
    return generate(runner, [_tokens(0)] * 3, new_tokens=size.new_tokens, chunk=80)[1]


def _on_other_pages(runner: ModelRunner, size: Size) -> Reply:
    pages = np.random.default_rng(9).permutation(runner.num_pages).tolist()
    prompts = [_tokens(0)]
    return generate(runner, prompts, new_tokens=size.new_tokens, chunk=100, pages=pages)[0]


def _on_one_thread(runner: ModelRunner, size: Size) -> Reply:
    runner.set_threads(1)
    return _beside_others(runner, size, chunk=50)


def _parked(runner: ModelRunner, size: Size, *, keeps: bool, threads: int = 2) -> Reply:
    """Second of two, each parked now and then, at other moments if their prompts took other steps."""
    runner.set_threads(threads)
    prompts = [_tokens(2, 120), _tokens(0)]
    parks = Parks(size.park_every, keeps)
    return generate(runner, prompts, new_tokens=size.new_tokens, chunk=90, parks=parks)[1]


WAYS: dict[str, Callable[[ModelRunner, Size], Reply]] = {
    "token by token": _token_by_token,
    "chunks of 7": partial(_alone, chunk=7),
    "chunks of 64": partial(_alone, chunk=64),
    "chunks of 256": partial(_alone, chunk=256),
    "beside three others": partial(_beside_others, chunk=64),
    "beside three others in small chunks": partial(_beside_others, chunk=5),
    "beside the same prompt": _beside_its_own_prompt,
    "on other pages": _on_other_pages,
    "on one thread": _on_one_thread,
    "parked every few tokens": partial(_parked, keeps=True),
    "parked every few tokens on one thread": partial(_parked, keeps=True, threads=1),
    "recomputed every few tokens": partial(_parked, keeps=False),
}


def check_all_ways(runner: ModelRunner, size: Size = SHORT) -> None:
    """Fails naming the ways in which a prompt's continuation is not, bit for bit, what it is alone."""
    assert runner.inexact_ops == ()
    runner.set_threads(2)
    expected = _alone(runner, size, chunk=300)
    assert len(expected.logits) == size.new_tokens
    different = []
    for name, run in WAYS.items():
        runner.set_threads(2)
        if not run(runner, size).equals(expected):
            different.append(name)
    assert different == []
