"""Whole small models on the native kernels: near the reference, and exact whatever the step's company."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_programs import MODELS, VOCABULARY, record
from fakes.native_rig import (
    VARIANTS,
    compiled,
    every_variant,
    is_paired,
    needs_kernels,
    reference,
)
from kernels.api import StepInputs
from kernels.cpu.library import NativeError
from kernels.kv_layout import KvType
from kernels.native_backend import NativeProgram

pytestmark = needs_kernels

LENGTH = 290
TOKENS = np.random.default_rng(8).integers(0, VOCABULARY, LENGTH).tolist()
TABLE = list(range(10))


def rows(begin: int, end: int, table: list[int] = TABLE) -> StepInputs:
    """Tokens [begin, end) of the one sequence, all logits wanted."""
    count = end - begin
    positions = list(range(begin, end))
    return StepInputs(TOKENS[begin:end], positions, [0] * count, [table], list(range(count)))


def in_chunks(
    native: NativeProgram, ends: list[int], table: list[int] = TABLE
) -> NDArray[np.float32]:
    starts = [0, *ends[:-1]]
    parts = [native.run(rows(a, b, table)).copy() for a, b in zip(starts, ends, strict=True)]
    return np.concatenate(parts)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_near_those_of_the_dequantised_weights(name: str, variant: str) -> None:
    program, weights = record(MODELS[name])
    with compiled(program, weights.source(), variant=variant, pages=10) as native:
        got = native.run(rows(0, 100))
        expected = reference(program, weights.source()).run(rows(0, 100))
        error = np.linalg.norm(got - expected, axis=1) / np.linalg.norm(expected, axis=1)
        storage = MODELS[name].storage
        rounds_rows = variant == "avx512bf16" and storage == "BF16"
        most = 5e-3 if is_paired(storage, variant) else 2e-3
        assert error.max() < (0.03 if rounds_rows else most)


@pytest.mark.parametrize(("variant", "name", "kv_type"), every_variant(MODELS, KvType))
def test_chunks_pages_and_threads_change_no_bit(name: str, variant: str, kv_type: KvType) -> None:
    program, weights = record(MODELS[name])
    ways = [
        (2, [LENGTH], TABLE),
        (1, [100, 228, LENGTH], TABLE),
        (3, [7, 257, 258, LENGTH], list(range(19, 9, -1))),
        (2, [250, *range(251, LENGTH + 1)], list(range(0, 20, 2))),
    ]
    results = []
    for threads, ends, table in ways:
        with compiled(
            program,
            weights.source(),
            variant=variant,
            threads=threads,
            pages=20,
            kv_type=kv_type,
        ) as native:
            results.append(in_chunks(native, ends, table))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_neighbours_change_no_bit(name: str, variant: str) -> None:
    """The last token at every place among up to 12 other sequences, and beside a chunk of another."""
    program, weights = record(MODELS[name])
    with compiled(program, weights.source(), variant=variant, pages=40) as native:
        alone = in_chunks(native, [LENGTH])[-1]
        others = list(range(10, 40))
        rng = np.random.default_rng(1)
        for count in (2, 3, 5, 8, 9, 13):
            for place in range(count):
                tokens = rng.integers(0, VOCABULARY, count).tolist()
                positions = [0] * count
                tables = [[others[s]] for s in range(count)]
                tokens[place], positions[place], tables[place] = TOKENS[-1], LENGTH - 1, TABLE
                step = StepInputs(tokens, positions, list(range(count)), tables, [place])
                np.testing.assert_array_equal(native.run(step)[0], alone)
        chunk = 33
        step = StepInputs(
            [*rng.integers(0, VOCABULARY, chunk).tolist(), TOKENS[-1]],
            [*range(chunk), LENGTH - 1],
            [*[0] * chunk, 1],
            [others[:2], TABLE],
            [chunk],
        )
        np.testing.assert_array_equal(native.run(step)[0], alone)


@pytest.mark.parametrize("name", MODELS)
def test_variants_with_fused_multiply_add_agree_in_every_bit(name: str) -> None:
    """Nothing promises it to users, but sums run in one order for every vector length: a cheap check of each layer.

    Of those, that is, that round the rows to as many bits.
    """
    program, weights = record(MODELS[name])
    storage = MODELS[name].storage
    results: dict[bool, list[NDArray[np.float32]]] = {True: [], False: []}
    rounds_rows = {"avx512bf16"} if storage == "BF16" else set()
    for variant in VARIANTS:
        if variant not in {"portable", *rounds_rows}:
            with compiled(program, weights.source(), variant=variant, pages=10) as native:
                results[is_paired(storage, variant)].append(in_chunks(native, [200, LENGTH]))
    for alike in results.values():
        for other in alike[1:]:
            np.testing.assert_array_equal(other, alike[0])


def test_a_step_that_does_not_fit_is_refused_and_harms_nothing() -> None:
    program, weights = record(MODELS["llama"])
    with compiled(program, weights.source(), pages=10, rows=100) as native:
        before = native.run(rows(0, 100)).copy()
        bad = {
            "a step of 101 rows, this program takes 1 to 100": rows(0, 101),
            "a step of 0 rows": StepInputs([], [], [], [], []),
            "token 97 of row 0 is not in the vocabulary of 97": StepInputs(
                [97], [0], [0], [[0]], [0]
            ),
            "token -1": StepInputs([-1], [0], [0], [[0]], [0]),
            "page 10 of sequence 0 is not in the pool of 10": StepInputs(
                [1], [0], [0], [[10]], [0]
            ),
            "page -1": StepInputs([1], [32], [0], [[0, -1]], [0]),
            "position 32 of row 0 has no page": StepInputs([1], [32], [0], [[0]], [0]),
            "position -1": StepInputs([1], [-1], [0], [[0]], [0]),
            "row 0 is of sequence 1, the step has 1": StepInputs([1], [0], [1], [[0]], [0]),
            "an output is of a row of the step": StepInputs([1], [0], [0], [[0]], [1]),
            "positions of a sequence must ascend": StepInputs([1, 1], [3, 3], [0, 0], [[0]], [0]),
        }
        for message, step in bad.items():
            with pytest.raises(NativeError, match=message):
                native.run(step)
        with pytest.raises(ValueError, match="one of each a row"):
            native.run(StepInputs([1, 2], [0], [0], [[0]], [0]))
        np.testing.assert_array_equal(native.run(rows(0, 100)), before)


def test_the_team_can_change_between_steps() -> None:
    program, weights = record(MODELS["llama"])
    with compiled(program, weights.source(), pages=10, threads=1) as native:
        expected = in_chunks(native, [200, LENGTH])
        for threads in (3, 2, 5, 1):
            native.team.resize(threads)
            np.testing.assert_array_equal(in_chunks(native, [200, LENGTH]), expected)
