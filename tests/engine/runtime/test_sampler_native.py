"""The native kernels draw what the sampler draws from the whole row."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from engine.api import SamplingParams
from engine.runtime.sampler import Sampler
from engine.runtime.token_mask import TokenMask
from fakes.native_rig import ModelWeights, compiled, needs_kernels, one_page_each, rows_program

pytestmark = needs_kernels

ROWS, WIDTH, VOCABULARY = 60, 3000, 2990


def random_rows(dice: np.random.Generator) -> np.ndarray:
    """Flat and steep ones, ones with ties, with few tokens that can come, and some with likely padding."""
    rows = dice.standard_normal((ROWS, WIDTH)) * dice.choice([0.01, 1.0, 3.0, 30.0], (ROWS, 1))
    rows[::3] = np.round(rows[::3] * 2) / 2
    rows[1::7][dice.random((len(rows[1::7]), WIDTH)) < 0.999] = -np.inf
    rows[:, 5] = 0.5
    rows[10:, VOCABULARY:] = -60.0
    return rows.astype(np.float32)


def random_sampler(dice: Random) -> Sampler:
    params = SamplingParams(
        temperature=dice.choice([0.0, 1e-300, 0.1, 0.8, 1.0, 2.5, 100.0]),
        top_k=dice.choice([1, 2, 3, 20, 40, 64, 200, 256]),
        top_p=dice.choice([0.0, 0.3, 0.5, 0.9, 0.95, 1.0]),
        min_p=dice.choice([0.0, 0.02, 0.05, 0.5, 1.0]),
    )
    seed = dice.randrange(-(1 << 63), 1 << 64)
    return Sampler(params, seed=seed, vocab_size=VOCABULARY, token_bytes=lambda _: b"")


@pytest.mark.parametrize("seed", range(4))
def test_the_kernels_draw_what_the_sampler_draws(seed: int) -> None:
    dice, drawn = Random(seed), 0
    rows = random_rows(np.random.default_rng(seed))
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows)
    program = recorder.finish(recorder.take_outputs(x))
    with compiled(program, weights.source(), threads=2) as native:
        for _ in range(20):
            samplers = [random_sampler(dice) for _ in range(ROWS)]
            positions = [dice.choice([0, 7, 3000, 1 << 40]) for _ in range(ROWS)]
            wishes = [one.wish(at) for one, at in zip(samplers, positions, strict=True)]
            logits = native.run(replace(one_page_each(range(ROWS)), wishes=wishes))
            for row, found in enumerate(native.found()):
                sampler, forgotten = samplers[row], positions[row]
                expected = sampler.sample(logits[row], [], forgotten=forgotten)
                told = sampler.sample(logits[row], [], forgotten=forgotten, found=found)
                assert told == expected
                drawn += found is not None
    assert drawn > 20 * (ROWS - 10)


def random_mask(dice: np.random.Generator, share: float) -> TokenMask:
    """So many of the tokens may come, token 5 always."""
    mask = TokenMask(WIDTH)
    bits = dice.random(-(-WIDTH // 32) * 32) < share
    bits[5] = True
    mask.words[:] = np.packbits(bits, bitorder="little").view(np.uint32)
    return mask


@pytest.mark.parametrize("seed", range(4))
def test_under_a_mask_too_and_as_if_no_other_token_had_a_chance(seed: int) -> None:
    dice, numbers, drawn = Random(seed), np.random.default_rng(seed), 0
    rows = random_rows(numbers)
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows)
    program = recorder.finish(recorder.take_outputs(x))
    with compiled(program, weights.source(), threads=2) as native:
        for _ in range(10):
            samplers = [random_sampler(dice) for _ in range(ROWS)]
            masks = [random_mask(numbers, dice.choice([0.0, 0.003, 0.5, 1.0])) for _ in range(ROWS)]
            wishes = [one.wish(7, mask) for one, mask in zip(samplers, masks, strict=True)]
            logits = native.run(replace(one_page_each(range(ROWS)), wishes=wishes))
            for row, found in enumerate(native.found()):
                sampler, mask = samplers[row], masks[row]
                expected = sampler.sample(mask.masked(rows[row, :VOCABULARY]), [], forgotten=7)
                assert sampler.sample(rows[row], [], forgotten=7, mask=mask) == expected
                told = sampler.sample(logits[row], [], forgotten=7, found=found, mask=mask)
                assert told == expected
                drawn += found is not None
    assert drawn > 10 * (ROWS - 10)
