"""The ways in which a model can be run that must not change a bit of what a sequence gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from engine.runtime.model_runner import ModelRunner
from fakes.runner_driver import Reply, generate

NEW_TOKENS = 6
PROMPT_TOKENS = 259
"""The prompt ends just beyond a piece of 256, the continuation too."""


def _tokens(seed: int, count: int = PROMPT_TOKENS) -> list[int]:
    return np.random.default_rng(seed).integers(3, 270, count).tolist()


def _alone(runner: ModelRunner, **how: int) -> Reply:
    return generate(runner, [_tokens(0)], new_tokens=NEW_TOKENS, **how)[0]


def _beside_others(runner: ModelRunner, chunk: int) -> Reply:
    """Third of four; the others begin and end at other times."""
    prompts = [_tokens(1, 5), _tokens(2, 120), _tokens(0), _tokens(3, 300)]
    return generate(runner, prompts, new_tokens=NEW_TOKENS, chunk=chunk)[2]


def _beside_its_own_prompt(runner: ModelRunner) -> Reply:
    return generate(runner, [_tokens(0)] * 3, new_tokens=NEW_TOKENS, chunk=80)[1]


def _on_other_pages(runner: ModelRunner) -> Reply:
    pages = np.random.default_rng(9).permutation(runner.num_pages).tolist()
    return generate(runner, [_tokens(0)], new_tokens=NEW_TOKENS, chunk=100, pages=pages)[0]


def _on_one_thread(runner: ModelRunner) -> Reply:
    runner.set_threads(1)
    return _beside_others(runner, 50)


WAYS: dict[str, Callable[[ModelRunner], Reply]] = {
    "chunks of 1": partial(_alone, chunk=1),
    "chunks of 7": partial(_alone, chunk=7),
    "chunks of 64": partial(_alone, chunk=64),
    "chunks of 256": partial(_alone, chunk=256),
    "beside three others": partial(_beside_others, chunk=64),
    "beside three others in small chunks": partial(_beside_others, chunk=5),
    "beside the same prompt": _beside_its_own_prompt,
    "on other pages": _on_other_pages,
    "on one thread": _on_one_thread,
}


def check_all_ways(runner: ModelRunner) -> None:
    """Fails naming the ways in which a prompt's continuation is not, bit for bit, what it is alone."""
    assert runner.inexact_ops == ()
    runner.set_threads(2)
    expected = _alone(runner, chunk=300)
    assert len(expected.logits) == NEW_TOKENS
    different = []
    for name, run in WAYS.items():
        runner.set_threads(2)
        if not run(runner).equals(expected):
            different.append(name)
    assert different == []
