"""Paged attention on the native kernels: near the reference, blind to pages, chunks, neighbours and threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_rig import (
    MOST_ROWS,
    ROW_COUNTS,
    VARIANTS,
    ModelWeights,
    compiled,
    every_variant,
    needs_kernels,
    reference,
)
from kernels.api import AttentionShape, Program, Recorder, StepInputs
from kernels.kv_layout import KvType
from kernels.native_backend import NativeProgram

pytestmark = needs_kernels

VOCABULARY = 64
SHAPES = [
    AttentionShape(0, heads=9, kv_heads=3, head_dim=64, scale=0.125),
    AttentionShape(0, heads=4, kv_heads=4, head_dim=16, scale=0.25),
    AttentionShape(0, heads=8, kv_heads=1, head_dim=40, scale=0.2),
    AttentionShape(0, heads=14, kv_heads=2, head_dim=96, scale=0.1),
    AttentionShape(0, heads=6, kv_heads=3, head_dim=32, scale=0.2, window=50),
    AttentionShape(0, heads=2, kv_heads=1, head_dim=64, scale=0.125, window=300),
]
STORED = (KvType.F16, KvType.Q8_0)


def attention_program(shape: AttentionShape) -> tuple[Program, ModelWeights]:
    """Queries, keys and values straight from embeddings; outputs are the attention's own rows."""
    weights = ModelWeights(seed=4)
    recorder = Recorder()
    q, k, v = (
        recorder.embedding(
            weights.put(name, weights_rows(heads * shape.head_dim, seed)), scale=scale
        )
        for seed, (name, heads, scale) in enumerate(
            [("q", shape.heads, 1.5), ("k", shape.kv_heads, 1.0), ("v", shape.kv_heads, 1.0)]
        )
    )
    recorder.store_kv(k, v, shape)
    return recorder.finish(recorder.take_outputs(recorder.attention(q, shape))), weights


def weights_rows(width: int, seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((VOCABULARY, width))
    return rows.astype(np.float16).astype(np.float32)  # so that 16-bit pages hold them exactly


def tokens_of(length: int, seed: int = 9) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCABULARY, length).tolist()


def prefill(
    native: NativeProgram, tokens: list[int], table: list[int], chunks: list[int]
) -> NDArray[np.float32]:
    """All rows of a sequence, computed in chunks of these sizes (the last one again and again)."""
    rows, at = [], 0
    for size in itertools.chain(chunks, itertools.repeat(chunks[-1])):
        count = min(size, len(tokens) - at)
        if count == 0:
            return np.concatenate(rows)
        step = StepInputs(
            tokens[at : at + count],
            list(range(at, at + count)),
            [0] * count,
            [table],
            list(range(count)),
        )
        rows.append(native.run(step).copy())
        at += count
    raise AssertionError


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kv_type", KvType)
def test_near_the_reference(shape: AttentionShape, variant: str, kv_type: KvType) -> None:
    program, weights = attention_program(shape)
    tokens = tokens_of(290)
    step = StepInputs(tokens, list(range(290)), [0] * 290, [list(range(10))], list(range(290)))
    with compiled(program, weights.source(), variant=variant, pages=10, kv_type=kv_type) as native:
        got = native.run(step)
        expected = reference(program, weights.source(), kv_type).run(step)
        # Queries that meet bytes are rounded to 15 bits by groups of 32; values here are around 1.
        atol = 4e-4 if kv_type is KvType.Q8_0 else 1e-5
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=atol)


@pytest.mark.parametrize(("variant", "shape", "kv_type"), every_variant(SHAPES, STORED), ids=str)
def test_chunks_pages_and_threads_change_no_bit(
    shape: AttentionShape, variant: str, kv_type: KvType
) -> None:
    """One prefill of 700 tokens against other chunks, other pages, single steps and other teams."""
    program, weights = attention_program(shape)
    tokens = tokens_of(700)
    ways = [
        (1, [700], list(range(22))),
        (2, [700], list(range(22))),
        (2, [256], list(range(21, -1, -1))),
        (3, [7, 250, 1, 442], list(range(0, 44, 2))),
        (2, [690, 1], list(range(22))),
        (3, [33], list(range(1, 45, 2))),
        (2, [1], list(range(22))),
    ]
    results = []
    for threads, chunks, table in ways:
        with compiled(
            program,
            weights.source(),
            variant=variant,
            threads=threads,
            pages=46,
            rows=700,
            kv_type=kv_type,
        ) as native:
            results.append(prefill(native, tokens, table, chunks))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kv_type", STORED)
def test_neighbours_change_no_bit(shape: AttentionShape, variant: str, kv_type: KvType) -> None:
    """Sequences of many lengths decode and prefill together as each does alone."""
    program, weights = attention_program(shape)
    lengths = [5, 32, 33, 300, 257, 256, 64, 520]
    tables = np.split(np.arange(8 * 17), 8)
    texts = [tokens_of(length, seed) for seed, length in enumerate(lengths)]
    with compiled(
        program, weights.source(), variant=variant, pages=136, rows=700, kv_type=kv_type
    ) as native:
        alone = []
        for text, table in zip(texts, tables, strict=True):
            alone.append(prefill(native, text, table.tolist(), [600])[-1])
        last = [length - 1 for length in lengths]
        order = [3, 0, 7, 1, 6, 2, 5, 4]
        together = StepInputs(
            [texts[s][-1] for s in order],
            [last[s] for s in order],
            list(range(8)),
            [tables[s].tolist() for s in order],
            list(range(8)),
        )
        got = native.run(together)
        for place, s in enumerate(order):
            np.testing.assert_array_equal(got[place], alone[s])
        # The last 33 rows of one sequence beside single rows of the others.
        chunk = list(range(267, 300))
        mixed = StepInputs(
            [texts[7][-1], *(texts[3][p] for p in chunk), texts[0][-1]],
            [last[7], *chunk, last[0]],
            [0, *[1] * 33, 2],
            [tables[s].tolist() for s in (7, 3, 0)],
            [0, 33, 34],
        )
        got = native.run(mixed)
        for place, s in enumerate((7, 3, 0)):
            np.testing.assert_array_equal(got[place], alone[s])


@pytest.mark.parametrize("kv_type", KvType)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_later_row_that_is_not_finite_does_not_reach_an_earlier_one(
    kv_type: KvType, variant: str
) -> None:
    shape = SHAPES[0]
    program, weights = attention_program(shape)
    values = weights_rows(3 * 64, 2)
    values[VOCABULARY - 1] = np.inf
    weights.put("v", values)
    tokens = [1, 2, 3, 4, VOCABULARY - 1, 5]
    with compiled(program, weights.source(), kv_type=kv_type, variant=variant) as native:
        together = prefill(native, tokens, [0], [6])
        one_by_one = prefill(native, tokens, [1], [1])
        np.testing.assert_array_equal(together, one_by_one)
        assert np.isfinite(together[:4]).all()
        assert not np.isfinite(together[4:]).any()


@pytest.mark.full
@pytest.mark.parametrize("kv_type", KvType)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_size_of_chunks_changes_a_bit(
    shape: AttentionShape, variant: str, kv_type: KvType
) -> None:
    program, weights = attention_program(shape)
    tokens = tokens_of(330)
    tables = list(range(11)), list(range(21, 10, -1))
    with compiled(program, weights.source(), variant=variant, pages=22, kv_type=kv_type) as native:
        expected = prefill(native, tokens, tables[0], [1])
        for threads in (1, 2):
            native.team.resize(threads)
            for chunk in ROW_COUNTS:
                got = prefill(native, tokens, tables[threads - 1], [chunk])
                np.testing.assert_array_equal(got, expected)


@pytest.mark.full
@pytest.mark.parametrize("kv_type", KvType)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_row_has_the_same_bits_at_every_place(
    shape: AttentionShape, variant: str, kv_type: KvType
) -> None:
    """Sequences of 1 to 64 tokens, and three long ones, decode together in every order of a turn."""
    program, weights = attention_program(shape)
    lengths = [1 + 7 * s % 64 for s in range(MOST_ROWS)]
    lengths[0], lengths[4], lengths[9] = 290, 257, 256
    texts = [tokens_of(length, seed) for seed, length in enumerate(lengths)]
    ends = np.cumsum([-(-length // 32) for length in lengths]).tolist()
    tables = [list(range(a, b)) for a, b in zip([0, *ends], ends, strict=False)]

    def decode(native: NativeProgram, order: list[int]) -> NDArray[np.float32]:
        step = StepInputs(
            [texts[s][-1] for s in order],
            [lengths[s] - 1 for s in order],
            list(range(len(order))),
            [tables[s] for s in order],
            list(range(len(order))),
        )
        return native.run(step).copy()

    with compiled(
        program, weights.source(), variant=variant, pages=ends[-1], kv_type=kv_type
    ) as native:
        for text, table in zip(texts, tables, strict=True):
            prefill(native, text, table, [300])
        alone = np.concatenate([decode(native, [s]) for s in range(MOST_ROWS)])
        for threads in (1, 2):
            native.team.resize(threads)
            for count in ROW_COUNTS:
                for turn in range(count):
                    order = np.roll(np.arange(count), turn).tolist()
                    np.testing.assert_array_equal(decode(native, order), alone[order])
