"""Checks on the machine at hand that a compiled program is exact: a row gets the same bits wherever it stands.

torch's kernels differ between processors, builds and devices, so the rule of `kernels.api` is not left to belief: an op
of every shape in the program runs with a row in one tile and in several, at other places, beside neighbours a thousand
times larger, and on one thread; the bits are compared. A device, whose libraries choose by size, has to prove the
largest step too. Runs once after loading, in the new pool, on the engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from kernels.api import GatedActivation, PagedAttention, RmsNorm, Rotary, StepInputs
from kernels.lowering import LinearGroup, read_buffers
from kernels.torch_backend import CompiledOp, TorchExecutable
from kernels.torch_step import TILE_ROWS, padded

_PLACES = ((1, 0), (1, 5), (3, 0), (3, TILE_ROWS + 1), (3, 3 * TILE_ROWS - 1))
"""How many tiles there are and where the row is put; the first is the comparison."""
_MOST_POSITIONS = 600
"""Length of the sequence that attention is tried on: three pieces."""


def find_inexact_ops(executable: TorchExecutable) -> tuple[str, ...]:
    """Names of the ops that break the rule; empty when every one keeps it. Leaves the pool zeroed."""
    random = torch.Generator().manual_seed(0)
    names = []
    for name, compiled in _distinct_ops(executable):
        if isinstance(compiled.op, PagedAttention):
            is_exact = _attention_is_exact(executable, compiled, random)
        else:
            is_exact = _row_op_is_exact(executable, compiled, random)
        if not is_exact:
            names.append(name)
    return tuple(names)


def _distinct_ops(executable: TorchExecutable) -> Iterator[tuple[str, CompiledOp]]:
    """One op of each kind and shape that computes something."""
    seen = set()
    for compiled in executable.ops:
        name = _name(compiled)
        if name is not None and name not in seen:
            seen.add(name)
            yield name, compiled


def _name(compiled: CompiledOp) -> str | None:
    match compiled.op:
        case LinearGroup() as op:
            bias = " + bias" if op.members[0].bias else ""
            return f"linear {op.x.width} -> {op.out.width}{bias}"
        case RmsNorm() as op:
            return f"rms_norm {op.x.width} by {op.group}"
        case Rotary() as op:
            return f"rotary {op.shape.heads} x {op.shape.head_dim}"
        case GatedActivation() as op:
            return f"{op.activation.value} {op.out.width}"
        case PagedAttention(shape=shape):
            window = f", window {shape.window}" if shape.window else ""
            return f"attention {shape.heads}/{shape.kv_heads} x {shape.head_dim}{window}"
        case _:
            return None


def _row_op_is_exact(
    executable: TorchExecutable, compiled: CompiledOp, random: torch.Generator
) -> bool:
    op = compiled.op
    assert isinstance(op, LinearGroup | RmsNorm | Rotary | GatedActivation)
    rows = [torch.randn(buffer.width, generator=random) for buffer in read_buffers(op)]

    def result_at(tiles: int, place: int) -> Tensor | None:
        step = executable.prepare(_lone_rows(executable, tiles * TILE_ROWS))
        out = step.view(op.out)
        if place >= min(len(out), step.num_rows):
            return None
        for buffer, row in zip(read_buffers(op), rows, strict=True):
            view = step.view(buffer)
            view.copy_(1000 * torch.randn(view.shape, generator=random))
            view[place] = row
        compiled.kernel.run(step)
        return out[place].clone()

    results = [result_at(tiles, place) for tiles, place in _PLACES]
    if _is_device(executable):
        results.append(result_at(padded(executable.limits.max_rows) // TILE_ROWS, 0))
    results.append(_on_one_thread(lambda: result_at(*_PLACES[0])))
    return _all_equal(results)


def _lone_rows(executable: TorchExecutable, count: int) -> StepInputs:
    """Rows of as many sequences, all at one position of one page."""
    rows = min(count, executable.limits.max_rows)
    position = min(executable.pool.page_tokens, executable.limits.max_positions) - 1
    outputs = list(range(min(rows, executable.limits.max_outputs)))
    return StepInputs([0] * rows, [position] * rows, list(range(rows)), [[0]] * rows, outputs)


def _attention_is_exact(
    executable: TorchExecutable, compiled: CompiledOp, random: torch.Generator
) -> bool:
    op = compiled.op
    assert isinstance(op, PagedAttention)
    pages, page_tokens = executable.kv_pool[:, op.shape.layer], executable.pool.page_tokens
    length = min(_MOST_POSITIONS, executable.limits.max_positions, len(pages) * page_tokens)
    table = list(range(-(-length // page_tokens)))
    _fill(executable, pages, table, random)
    row = torch.randn(op.query.width, generator=random)

    def result_beside(before: int, others: int) -> Tensor:
        """The last row of a prompt's chunk with `before` earlier rows, beside rows of other sequences."""
        inputs = _attention_inputs(length, before, others, table)
        step = executable.prepare(inputs)
        query = step.view(op.query)
        query.copy_(1000 * torch.randn(query.shape, generator=random))
        query[before] = row
        compiled.kernel.run(step)
        return step.view(op.out)[before].clone()

    most = executable.limits.max_rows - 1
    results = [
        result_beside(0, 0),
        result_beside(min(2 * TILE_ROWS + 5, length - 1, most), 0),
        result_beside(0, min(3, most)),
        _on_one_thread(lambda: result_beside(min(3, length - 1, most), 0)),
    ]
    if _is_device(executable):
        results += [result_beside(0, most), result_beside(min(length - 1, most), 0)]
    last_page = pages[table[-1]]
    # What a page held before: no numbers, and bytes whose scales are none.
    no_number = torch.nan if last_page.is_floating_point() else -1
    last_page[:, (length - 1) % page_tokens + 1 :] = no_number
    results.append(result_beside(0, 0))
    pages[table] = 0
    return _all_equal(results)


def _fill(
    executable: TorchExecutable, pages: Tensor, table: list[int], random: torch.Generator
) -> None:
    storage = executable.pool.storage
    shape = (*pages[table].shape[:-1], storage.head_dim)
    stored = pages[table]
    storage.encode(torch.randn(shape, generator=random).to(pages.device), stored)
    pages[table] = stored


def _attention_inputs(length: int, before: int, others: int, table: list[int]) -> StepInputs:
    positions = list(range(length - 1 - before, length))
    sequences = [0] * len(positions)
    for other in range(others):
        positions.append(length * other // others)
        sequences.append(other + 1)
    rows = len(positions)
    return StepInputs([0] * rows, positions, sequences, [table] * (others + 1), [])


def _is_device(executable: TorchExecutable) -> bool:
    return executable.kv_pool.device.type != "cpu"


def _all_equal(results: Sequence[Tensor | None]) -> bool:
    """Bit by bit, so that NaN of damaged weights equals itself. None: a place that this program's steps do not have."""
    bits = [result.view(torch.int32) for result in results if result is not None]
    return all(torch.equal(one, bits[0]) for one in bits)


def _on_one_thread(compute: Callable[[], Tensor | None]) -> Tensor | None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return compute()
    finally:
        torch.set_num_threads(threads)
