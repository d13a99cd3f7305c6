"""The rule of the whole engine on the native kernels: a row's bits are the same alone, beside any others, at any place.

Every op by itself, and fused as models use it, in every weight format, on every variant that this machine can run, on
one thread and on two; with M rows for M in `ROW_COUNTS`. By default a few turns of each M, in the whole check (`full`)
each of the M rows at each of the M places. The same for attention, by chunks, in test_native_attention.py, for torch
in test_row_invariance.py, for Arm in test_native_arm.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fakes.native_rig import (
    FLOATS,
    MOST_ROWS,
    ROW_COUNTS,
    STORAGES,
    VARIANTS,
    ModelWeights,
    compiled,
    every_variant,
    needs_kernels,
    odd_rows,
    rows_program,
)
from kernels.api import Activation, Buffer, Program, Recorder, RotaryShape, StepInputs, WeightRef
from kernels.native_backend import NativeProgram

pytestmark = needs_kernels

WIDTH, WHOLE_WIDTH = 512, 256
"""In the whole check rows are shorter, for time."""
THREADS = (1, 2)
FEW_TURNS = 4
PORTABLE_TURNS = 64
"""The portable variant takes 30 times as long: of 300 places each of its rows stands at so many."""
MakeWeight = Callable[[str, tuple[int, ...]], WeightRef]
Record = Callable[[Recorder, Buffer, MakeWeight], Buffer]


def _linear(outputs: int) -> Record:
    return lambda recorder, x, weight: recorder.linear(x, weight("w", (outputs, x.width)))


def _biased(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    return recorder.linear(x, weight("w", (40, x.width)), bias=weight("b", (40,)))


def _residual(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    return recorder.linear(x, weight("w", (x.width, x.width)), residual=x)


def _feed_forward(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    """Norm, gate and up, activation and down with residual: every fused step around products."""
    h = recorder.rms_norm(x, weight("norm", (x.width,)), epsilon=1e-5)
    gate = recorder.linear(h, weight("gate", (256, x.width)))
    up = recorder.linear(h, weight("up", (256, x.width)))
    h = recorder.gated_activation(gate, up, Activation.SILU)
    return recorder.linear(h, weight("down", (x.width, 256)), residual=x)


def _norm(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    return recorder.rms_norm(x, weight("norm", (x.width,)), epsilon=1e-5)


def _head_norm(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    return recorder.rms_norm(x, weight("norm", (x.width // 4,)), epsilon=1e-5)


def _rotary(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    del weight
    frequencies = tuple(0.7**i for i in range(x.width // 8))
    return recorder.rotary(x, RotaryShape(4, x.width // 4, x.width // 4, frequencies))


def _gate(activation: Activation) -> Record:
    return lambda recorder, x, weight: recorder.gated_activation(
        x, _norm(recorder, x, weight), activation
    )


def _taken(recorder: Recorder, x: Buffer, weight: MakeWeight) -> Buffer:
    del recorder, weight
    return x


PRODUCTS: dict[str, Record] = {
    "linear 80": _linear(80),
    "linear 7": _linear(7),
    "linear with bias": _biased,
    "linear with residual": _residual,
    "feed forward": _feed_forward,
}
ROW_OPS: dict[str, Record] = {
    "embedding": _taken,
    "norm": _norm,
    "head norm": _head_norm,
    "rotary": _rotary,
    "silu": _gate(Activation.SILU),
    "gelu": _gate(Activation.GELU_TANH),
}


def record(op: Record, storage: str, width: int) -> tuple[Program, ModelWeights]:
    """One op on rows looked up in a table, all of which come out."""
    weights = ModelWeights()
    recorder, x = rows_program(weights, odd_rows(width))

    def weight(name: str, shape: tuple[int, ...]) -> WeightRef:
        return weights.add(name, shape, storage if len(shape) > 1 else "F32")

    out = op(recorder, x, weight)
    return recorder.finish(recorder.take_outputs(out)), weights


def step_of(tokens: list[int]) -> StepInputs:
    """Each token in a sequence of its own, at a position that depends on it alone."""
    count = len(tokens)
    positions = [token * 7 % 31 for token in tokens]
    return StepInputs(tokens, positions, list(range(count)), [[0]] * count, list(range(count)))


def check_company(native: NativeProgram, most_turns: int) -> None:
    """Fails where a row has other bits than alone, in up to `most_turns` turns of each number of rows."""
    rng = np.random.default_rng(2)
    native.team.resize(1)
    alone = np.concatenate([native.run(step_of([row])).copy() for row in range(MOST_ROWS)])
    for threads in THREADS:
        native.team.resize(threads)
        for count in ROW_COUNTS:
            tokens = rng.permutation(MOST_ROWS)[:count]
            for turn in range(min(count, most_turns)):
                turned = np.roll(tokens, turn).tolist()
                same = native.run(step_of(turned)).view(np.int32) == alone[turned].view(np.int32)
                assert same.all(), (threads, count, turn)


def check(name: str, storage: str, variant: str, *, width: int = WIDTH, most_turns: int) -> None:
    program, weights = record((PRODUCTS | ROW_OPS)[name], storage, width)
    with compiled(program, weights.source(), variant=variant) as native:
        check_company(native, most_turns)


def every_turn(variant: str) -> int:
    return PORTABLE_TURNS if variant == "portable" else MOST_ROWS


@pytest.mark.parametrize(
    ("variant", "storage", "name"), every_variant(STORAGES, ["linear 80", "feed forward"])
)
def test_a_product_has_the_same_bits_in_some_company(name: str, variant: str, storage: str) -> None:
    check(name, storage, variant, most_turns=FEW_TURNS)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ROW_OPS)
def test_a_row_op_has_the_same_bits_in_some_company(name: str, variant: str) -> None:
    check(name, "F32", variant, most_turns=FEW_TURNS)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_has_the_same_bits_at_every_place(name: str, variant: str, storage: str) -> None:
    check(name, storage, variant, width=WHOLE_WIDTH, most_turns=every_turn(variant))


@pytest.mark.full
@pytest.mark.parametrize("storage", FLOATS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("width", [1, 31, 100])
def test_a_float_product_of_any_width_has_the_same_bits_at_every_place(
    width: int, variant: str, storage: str
) -> None:
    check("linear 80", storage, variant, width=width, most_turns=every_turn(variant))


@pytest.mark.full
@pytest.mark.parametrize("width", [64, 576])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ROW_OPS)
def test_a_row_op_has_the_same_bits_at_every_place(name: str, variant: str, width: int) -> None:
    check(name, "F32", variant, width=width, most_turns=MOST_ROWS)


@pytest.mark.full
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_row_of_a_table_has_the_same_bits_at_every_place(variant: str, storage: str) -> None:
    weights = ModelWeights()
    recorder = Recorder()
    table = weights.add("table", (MOST_ROWS, 256), storage)
    out = recorder.rms_norm(recorder.embedding(table), weights.add("norm", (256,)), epsilon=1e-5)
    program = recorder.finish(recorder.take_outputs(out))
    with compiled(program, weights.source(), variant=variant) as native:
        check_company(native, MOST_ROWS)


@pytest.mark.parametrize("storage", ["Q4_1", "Q8_0", "Q6_K", "BF16"])
@pytest.mark.parametrize("name", ["linear 80", "feed forward"])
def test_more_threads_than_cores_change_no_bit(name: str, storage: str) -> None:
    program, weights = record(PRODUCTS[name], storage, WIDTH)
    steps = [step_of(list(range(count))) for count in (1, 5, 9, 70, 300)]
    with compiled(program, weights.source(), threads=1) as native:
        expected = np.concatenate([native.run(step).copy() for step in steps])
        for threads in (3, 7):
            native.team.resize(threads)
            got = np.concatenate([native.run(step).copy() for step in steps])
            np.testing.assert_array_equal(got, expected)
