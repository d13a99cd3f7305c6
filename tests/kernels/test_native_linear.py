"""Linear layers on the native kernels: near the dequantised product. Company is in test_native_invariance.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fakes.native_rig import (
    FLOATS,
    MOST_ROWS,
    QUANTIZED,
    STORAGES,
    VARIANTS,
    ModelWeights,
    compiled,
    is_paired,
    needs_kernels,
    odd_rows,
    one_page_each,
    reference,
    rows_program,
)
from kernels.api import Program, WeightRef
from kernels.cpu.library import load_library
from kernels.weight_store import StoredWeight

pytestmark = needs_kernels

INPUTS, OUTPUTS, NUM_ROWS = 512, 80, MOST_ROWS
QUANTIZED_ERROR = 2e-4  # of the norm of a row's outputs; codes of 15 bits in blocks of 32
PAIRED_ERROR = (
    2e-3  # of 12 bits, where weights have 4 and an instruction sums four products of bytes exactly
)
LARGEST_PAIRED_CODE = 1799
FLOAT_ERROR = 1e-5
BFLOAT_ERROR = 0.005  # where an instruction multiplies pairs of bfloat16, rows are rounded to 8 bits of fraction


def linear_program(
    storage: str, width: int = INPUTS, outputs: int = OUTPUTS
) -> tuple[Program, ModelWeights]:
    weights = ModelWeights()
    recorder, x = rows_program(weights, odd_rows(width))
    out = recorder.linear(x, weights.add("w", (outputs, width), storage))
    return recorder.finish(recorder.take_outputs(out)), weights


def error_of(storage: str, variant: str) -> float:
    """What may be lost in a product with weights of that storage."""
    if storage == "BF16":
        return BFLOAT_ERROR
    if is_paired(storage, variant):
        return PAIRED_ERROR
    return FLOAT_ERROR if storage in FLOATS else QUANTIZED_ERROR


def assert_near(got: NDArray[np.float32], expected: NDArray[np.float64], error: float) -> None:
    off = np.linalg.norm(got - expected, axis=1)
    assert (off <= error * np.linalg.norm(expected, axis=1) + 1e-30).all(), off.max()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_product_is_near_that_of_the_dequantised_weights(storage: str, variant: str) -> None:
    program, weights = linear_program(storage)
    step = one_page_each(range(NUM_ROWS))
    with compiled(program, weights.source(), variant=variant) as native:
        got = native.run(step)
        expected = reference(program, weights.source()).run(step)
        assert_near(got, expected, error_of(storage, variant))


@pytest.mark.parametrize("storage", ["Q4_0", "F32"])
@pytest.mark.parametrize("outputs", [1, 15, 17, 33])
def test_outputs_need_be_no_multiple_of_anything(storage: str, outputs: int) -> None:
    program, weights = linear_program(storage, 64, outputs)
    step = one_page_each(range(20))
    with compiled(program, weights.source()) as native:
        got, expected = native.run(step), reference(program, weights.source()).run(step)
        error = error_of(storage, load_library().variant)
        assert_near(got.reshape(1, -1), expected.reshape(1, -1), error)


def four_bit_blocks(storage: str, outputs: int, inputs: int) -> NDArray[np.uint8]:
    """Random codes of weights whose scale is 1, with a minimum of -7 where there is one."""
    numbers = {"Q4_0": [1], "Q4_1": [1, -7]}[storage]
    head = np.array(numbers, np.float16).view(np.uint8)
    codes = np.random.default_rng(2).integers(0, 256, (outputs * inputs // 32, 16), np.uint8)
    codes[:2], codes[2:4] = 0x00, 0xFF
    return np.hstack([np.tile(head, (len(codes), 1)), codes]).reshape(-1)


@pytest.mark.parametrize("storage", ["Q4_0", "Q4_1"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_values_that_share_bytes_are_multiplied_exactly(storage: str, variant: str) -> None:
    if not is_paired(storage, variant):
        pytest.skip("this variant takes values byte by byte")
    most, width = LARGEST_PAIRED_CODE, 64
    rows = np.random.default_rng(3).integers(-most, most, (MOST_ROWS, width), endpoint=True)
    rows[:, ::32] = most  # so that a block's scale is 1
    rows[0], rows[1] = most, -most
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows.astype(np.float32))
    blocks = four_bit_blocks(storage, OUTPUTS, width)
    weights.tensors["w"] = StoredWeight(storage, blocks, (OUTPUTS, width))
    out = recorder.linear(x, WeightRef("w", (OUTPUTS, width)))
    program = recorder.finish(recorder.take_outputs(out))
    expected = rows @ weights.source().values()["w"].T.astype(np.int64)
    with compiled(program, weights.source(), variant=variant) as native:
        for count in (*range(1, 9), MOST_ROWS):
            assert (native.run(one_page_each(range(count))) == expected[:count]).all()


@pytest.mark.parametrize("storage", FLOATS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("width", [1, 31, 50, 100])
def test_float_weights_take_rows_of_any_width(storage: str, variant: str, width: int) -> None:
    program, weights = linear_program(storage, width)
    step = one_page_each(range(20))
    with compiled(program, weights.source(), variant=variant) as native:
        expected = reference(program, weights.source()).run(step)
        assert_near(native.run(step), expected, error_of(storage, variant))


def test_bias_and_residual_are_added() -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, odd_rows(64))
    bias = weights.put("b", np.arange(64, dtype=np.float32))
    w = weights.add("w", (64, 64), "F32")
    out = recorder.linear(x, w, bias=bias, residual=x)
    program = recorder.finish(recorder.take_outputs(out))
    step = one_page_each(range(30))
    with compiled(program, weights.source()) as native:
        assert_near(native.run(step), reference(program, weights.source()).run(step), FLOAT_ERROR)


def test_a_bias_of_another_length_is_refused() -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, odd_rows(64))
    out = recorder.linear(x, weights.add("w", (64, 64)), bias=weights.add("b", (48,)))
    program = recorder.finish(recorder.take_outputs(out))
    with (
        pytest.raises(ValueError, match=r"b is \(48,\), there are 64 outputs"),
        compiled(program, weights.source()),
    ):
        pass


def test_tiny_numbers_are_kept_whatever_the_float_mode_of_the_caller() -> None:
    weights = ModelWeights()
    recorder, x = rows_program(weights, np.full((NUM_ROWS, 32), 1e-20, np.float32))
    out = recorder.linear(x, weights.put("w", np.full((64, 32), 1e-20, np.float32)))
    program = recorder.finish(recorder.take_outputs(out))
    step = one_page_each(range(300))
    with compiled(program, weights.source()) as native:
        expected = native.run(step).copy()
        assert (expected > 0).all()
        torch.set_flush_denormal(True)
        try:
            got = native.run(step).copy()
        finally:
            torch.set_flush_denormal(False)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("storage", ["Q4_1", "F32"])
@pytest.mark.parametrize("place", [0, 17, 40, 63])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_not_finite_shows_it_and_harms_no_other(
    storage: str, place: int, bad: float
) -> None:
    weights = ModelWeights()
    rows = odd_rows(64)
    rows[2, place] = bad
    recorder, x = rows_program(weights, rows)
    out = recorder.linear(x, weights.add("w", (32, 64), storage))
    program = recorder.finish(recorder.take_outputs(out))
    with compiled(program, weights.source()) as native:
        got = native.run(one_page_each([0, 1, 2, 4])).copy()
        others = native.run(one_page_each([0, 1, 4]))
        assert not np.isfinite(got[2]).any()
        np.testing.assert_array_equal(got[[0, 1, 3]], others)


@pytest.mark.parametrize("storage", QUANTIZED)
def test_products_of_the_extreme_codes_do_not_overflow(storage: str) -> None:
    """All bits set in the codes, largest activations: what saturating arithmetic would get wrong."""
    weights = ModelWeights()
    rows = np.full((NUM_ROWS, 256), 3.0, np.float32)
    rows[1] = -3.0
    recorder, x = rows_program(weights, rows)
    w = weights.add("w", (16, 256), storage)
    stored = weights.tensors["w"]
    codes = np.frombuffer(stored.data, np.uint8)
    form_bytes = {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20, "Q6_K": 210}.get(storage)
    if form_bytes:
        blocks = codes.reshape(-1, form_bytes)
        if storage == "Q8_0":
            blocks[::2, 2:] = 0x80
            blocks[1::2, 2:] = 0x7F
        elif storage == "Q6_K":
            blocks[:, :192] = 0xFF
        else:
            blocks[:, form_bytes - 16 :] = 0xFF
    program = recorder.finish(recorder.take_outputs(recorder.linear(x, w)))
    step = one_page_each(range(3))
    for variant in VARIANTS:
        with compiled(program, weights.source(), variant=variant) as native:
            expected = reference(program, weights.source()).run(step)
            assert_near(native.run(step), expected, 1e-5)
