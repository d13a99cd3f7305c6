"""What happens to one row at a time on the native kernels: norms, rotation, gates, embedding, taking rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_rig import (
    STORAGES,
    VARIANTS,
    ModelWeights,
    compiled,
    needs_kernels,
    one_page_each,
    reference,
    rows_program,
)
from kernels.api import Activation, Buffer, Program, Recorder, RotaryShape, StepInputs

pytestmark = needs_kernels

NUM_ROWS = 40


def random_rows(width: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(3).standard_normal((NUM_ROWS, width)).astype(np.float32)
    rows[1] *= 1000
    rows[2] *= 1e-6
    return rows


def finish(recorder: Recorder, x: Buffer) -> Program:
    return recorder.finish(recorder.take_outputs(x))


def run_all(program: Program, weights: ModelWeights, variant: str) -> None:
    """Near the reference, and every row the same bits alone as among all."""
    step = StepInputs(
        list(range(NUM_ROWS)),
        [(7 * r) % 31 for r in range(NUM_ROWS)],
        list(range(NUM_ROWS)),
        [[0]] * NUM_ROWS,
        list(range(NUM_ROWS)),
    )
    with compiled(program, weights.source(), variant=variant) as native:
        got = native.run(step).copy()
        expected = reference(program, weights.source()).run(step)
        largest = np.abs(expected).max(axis=1, keepdims=True)  # a rotation cancels within a row
        assert (np.abs(got - expected) <= 1e-6 * largest + 1e-9).all()
        for r in range(NUM_ROWS):
            alone = StepInputs([r], [step.positions[r]], [0], [[0]], [0])
            np.testing.assert_array_equal(native.run(alone)[0], got[r])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("width", "group"), [(64, 64), (100, 100), (96, 16), (60, 5), (576, 576)])
def test_norms_of_rows_and_of_heads(variant: str, width: int, group: int) -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, random_rows(width))
    out = recorder.rms_norm(x, weights.add("norm", (group,)), epsilon=1e-5)
    run_all(finish(recorder, out), weights, variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(64, 64), (64, 32), (20, 10), (128, 128)])
def test_rotation_by_position(variant: str, head_dim: int, rotary_dim: int) -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, random_rows(3 * head_dim))
    frequencies = tuple(1e4 ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2))
    shape = RotaryShape(3, head_dim, rotary_dim, frequencies, magnitude=1.25)
    run_all(finish(recorder, recorder.rotary(x, shape)), weights, variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("width", [32, 50, 100])
def test_gates(variant: str, activation: Activation, width: int) -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, random_rows(width))
    up = recorder.rms_norm(x, weights.add("norm", (width,)), epsilon=1e-5)
    run_all(finish(recorder, recorder.gated_activation(x, up, activation)), weights, variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gates_far_from_zero_stay_finite(variant: str) -> None:
    weights = ModelWeights()
    rows = np.linspace(-200, 200, NUM_ROWS * 32, dtype=np.float32).reshape(NUM_ROWS, 32)
    recorder, x = rows_program(weights, rows)
    for activation in Activation:
        x = recorder.gated_activation(x, x, activation)
    with compiled(finish(recorder, x), weights.source(), variant=variant) as native:
        assert np.isfinite(native.run(one_page_each(range(NUM_ROWS)))).all()


@pytest.mark.parametrize("storage", STORAGES)
def test_embedding_rows_are_the_values_of_the_file(storage: str) -> None:
    weights = ModelWeights()
    recorder = Recorder()
    x = recorder.embedding(weights.add("table", (50, 256), storage), scale=2.0)
    program = finish(recorder, x)
    tokens = [0, 49, 17, 17, 1]
    with compiled(program, weights.source()) as native:
        expected = weights.source().values()["table"][tokens] * np.float32(2)
        np.testing.assert_array_equal(native.run(one_page_each(tokens)), expected)


def test_only_wanted_rows_come_out_in_the_order_wanted() -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, random_rows(32))
    with compiled(finish(recorder, x), weights.source()) as native:
        step = one_page_each(range(10))
        wanted = StepInputs(
            step.token_ids, step.positions, step.sequences, step.page_tables, [7, 0, 7]
        )
        np.testing.assert_array_equal(native.run(wanted), random_rows(32)[[7, 0, 7]])
        nothing = StepInputs(step.token_ids, step.positions, step.sequences, step.page_tables, [])
        assert native.run(nothing).shape == (0, 32)
