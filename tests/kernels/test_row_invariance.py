"""The rule of the whole engine: a row's bits are the same alone, beside any others, at any place, on 1 or 2 threads.

Each op runs by itself with M rows for M in `SIZES`; every row of it must have the bits it had alone. Neighbours are
random and some a thousand times larger.
"""

from collections.abc import Callable

import pytest
import torch

from fakes.tiny_programs import PAGE_TOKENS, TinyProgram, random_weights
from kernels.api import (
    Activation,
    Buffer,
    PagedAttention,
    Recorder,
    RotaryShape,
    StepInputs,
    WeightRef,
)
from kernels.lowering import read_buffers
from kernels.torch_backend import TorchExecutable, compile_program
from kernels.torch_linear import PlainWeight
from kernels.torch_step import Limits

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 300)
Record = Callable[[Recorder, Buffer], Buffer]
LIMITS = Limits(max_rows=300, max_outputs=1, max_positions=700)


def _norm(recorder: Recorder, x: Buffer) -> Buffer:
    return recorder.rms_norm(x, WeightRef("w", (x.width,)), epsilon=1e-5)


def _head_norm(recorder: Recorder, x: Buffer) -> Buffer:
    return recorder.rms_norm(x, WeightRef("w", (x.width // 4,)), epsilon=1e-5)


def _linear(out: int) -> Record:
    return lambda recorder, x: recorder.linear(x, WeightRef("w", (out, x.width)))


def _biased(recorder: Recorder, x: Buffer) -> Buffer:
    return recorder.linear(
        x, WeightRef("w", (40, x.width)), bias=WeightRef("b", (40,)), residual=None
    )


def _residual(recorder: Recorder, x: Buffer) -> Buffer:
    return recorder.linear(x, WeightRef("w", (x.width, x.width)), residual=x)


def _rotary(recorder: Recorder, x: Buffer) -> Buffer:
    frequencies = tuple(0.7**i for i in range(x.width // 8))
    return recorder.rotary(x, RotaryShape(4, x.width // 4, x.width // 4, frequencies))


def _gate(activation: Activation) -> Record:
    return lambda recorder, x: recorder.gated_activation(x, x, activation)


OPS = {
    "norm": (_norm, (16, 100, 576, 2048)),
    "head norm": (_head_norm, (16, 256)),
    "linear 40": (_linear(40), (16, 100, 576, 1536)),
    "linear 1": (_linear(1), (64,)),
    "linear 10": (_linear(10), (64, 2048)),
    "linear 53": (_linear(53), (37, 576)),
    "linear 1000": (_linear(1000), (64, 2048)),
    "linear with bias": (_biased, (100,)),
    "linear with residual": (_residual, (100, 576)),
    "rotary": (_rotary, (64, 576)),
    "silu": (_gate(Activation.SILU), (1, 31, 100, 1531, 1536, 40_001)),
    "gelu": (_gate(Activation.GELU_TANH), (31, 1536)),
}
CASES = [(name, width) for name, (_, widths) in OPS.items() for width in widths]


def _compile_op(name: str, width: int) -> TorchExecutable:
    recorder = Recorder()
    x = recorder.embedding(WeightRef("table", (2, width)))
    program = recorder.finish(OPS[name][0](recorder, x))
    return compile_program(program, random_weights(program), TinyProgram().pool(1), LIMITS)


def _run_op(executable: TorchExecutable, rows: torch.Tensor) -> torch.Tensor:
    """The second op of the program on `rows` as its input; every row at position 9 of its own sequence."""
    count = len(rows)
    step = executable.prepare(
        StepInputs([0] * count, [9] * count, list(range(count)), [[0]] * count, [])
    )
    compiled = executable.ops[1]
    for buffer in read_buffers(compiled.op):
        step.view(buffer)[:count] = rows
    compiled.kernel.run(step)
    return step.view(executable.program.logits)[:count].clone()


@pytest.mark.parametrize(("name", "width"), CASES)
def test_a_row_has_the_same_bits_in_any_company(name: str, width: int) -> None:
    random = torch.Generator().manual_seed(width)
    few = width > 10_000
    sizes = SIZES[:6] if few else SIZES
    rows = torch.randn(max(sizes), width, generator=random)
    rows[::3] *= 1000
    executable = _compile_op(name, width)
    alone = torch.cat([_run_op(executable, row[None]) for row in rows])
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for size in sizes:
            for _ in range(min(size, 4)):
                order = torch.randperm(len(rows), generator=random)[:size]
                assert torch.equal(_run_op(executable, rows[order]), alone[order]), (size, threads)


@pytest.mark.parametrize("width", [100, 1536])
def test_every_place_of_small_steps_is_alike(width: int) -> None:
    random = torch.Generator().manual_seed(1)
    for name in ("norm", "linear 40", "silu"):
        executable = _compile_op(name, width)
        row = torch.randn(width, generator=random)
        alone = _run_op(executable, row[None])[0]
        for size in SIZES[:10]:
            for place in range(size):
                rows = 1000 * torch.randn(size, width, generator=random)
                rows[place] = row
                assert torch.equal(_run_op(executable, rows)[place], alone), (name, size, place)


@pytest.mark.parametrize("width", [1, 10, 40, 53, 1000])
def test_linear_layers_without_onednn_are_alike_too(width: int) -> None:
    random = torch.Generator().manual_seed(2)
    weight = PlainWeight(torch.randn(width, 576, generator=random), None)
    rows = 1000 * torch.randn(16, 576, generator=random)
    expected = weight.multiply(rows)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for _ in range(10):
            order = torch.randperm(16, generator=random)
            assert torch.equal(weight.multiply(rows[order]), expected[order])


class _Attention:
    """One attention layer over a pool that already holds three sequences of 700 positions."""

    def __init__(self, shape: TinyProgram, dtype: torch.dtype) -> None:
        self.random = torch.Generator().manual_seed(3)
        program = shape.record()
        pool = shape.pool(70, dtype)
        self.executable = compile_program(program, random_weights(program), pool, LIMITS)
        heads = torch.randn(*pool.shape[:-1], shape.head_dim, generator=self.random)
        self.executable.pool.storage.encode(heads, pool)
        self.compiled = next(
            one for one in self.executable.ops if isinstance(one.op, PagedAttention)
        )
        order = torch.randperm(70, generator=self.random).tolist()
        self.tables = [order[i * 22 : (i + 1) * 22] for i in range(3)]
        width = shape.heads * shape.head_dim
        self.queries = torch.randn(3, 22 * PAGE_TOKENS, width, generator=self.random)

    def run(self, spans: list[tuple[int, int, int]]) -> list[torch.Tensor]:
        """Results of each (sequence, start, count), all in one step."""
        inputs = StepInputs([], [], [], [], [])
        queries = []
        for index, (sequence, start, count) in enumerate(spans):
            inputs.token_ids.extend([0] * count)
            inputs.positions.extend(range(start, start + count))
            inputs.sequences.extend([index] * count)
            inputs.page_tables.append(self.tables[sequence][: -(-(start + count) // PAGE_TOKENS)])
            queries.append(self.queries[sequence, start : start + count])
        step = self.executable.prepare(inputs)
        op = self.compiled.op
        assert isinstance(op, PagedAttention)
        rows = torch.cat(queries)
        step.view(op.query)[: len(rows)] = rows
        self.compiled.kernel.run(step)
        return list(step.view(op.out)[: len(rows)].clone().split([count for *_, count in spans]))


SMALL = TinyProgram(heads=4, kv_heads=4, head_dim=10)
GROUPED = TinyProgram(heads=9, kv_heads=3, head_dim=64)
WINDOWED = TinyProgram(heads=14, kv_heads=2, head_dim=16, windows=(300, 0))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((SMALL, dtype) for dtype in (torch.float16, torch.float32, torch.int8)),
        (GROUPED, torch.float16),
        (WINDOWED, torch.int8),
        *(
            pytest.param(shape, dtype, marks=pytest.mark.full)
            for shape, dtype in (
                (GROUPED, torch.float32), (GROUPED, torch.int8),
                (WINDOWED, torch.float16), (WINDOWED, torch.float32),
            )
        ),
    ],
    ids=lambda one: f"{one.heads}/{one.kv_heads}" if isinstance(one, TinyProgram) else str(one),
)  # fmt: skip
def test_attention_of_a_position_is_alike_in_any_chunk_and_company(
    shape: TinyProgram, dtype: torch.dtype
) -> None:
    attention = _Attention(shape, dtype)
    start, stop = 240, 540
    alone = torch.cat([attention.run([(0, position, 1)])[0] for position in range(start, stop)])
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for chunk in (2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 300):
            got = [
                attention.run([(0, first, min(chunk, stop - first))])[0]
                for first in range(start, stop, chunk)
            ]
            assert torch.equal(torch.cat(got), alone), (chunk, threads)
        for first in range(start, stop, 37):
            count = min(37, stop - first)
            company = [(1, first + 100, 1), (0, first, count), (2, 5, 40), (1, 0, 1)]
            got = attention.run(company)[1]
            assert torch.equal(got, alone[first - start : first - start + count]), (first, threads)
