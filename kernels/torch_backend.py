"""Compiles a recorded program for torch and runs it, one op after another. Engine thread, the only one to call torch.

Exact: a row's bits depend on its own token, position and sequence alone (see `torch_step`, `torch_linear`,
`torch_attention`); `torch_self_test.find_inexact_ops` checks that on the machine at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

import torch
from torch import Tensor

from kernels.api import (
    AttentionShape,
    Embedding,
    GatedActivation,
    Linear,
    PagedAttention,
    Program,
    RmsNorm,
    Rotary,
    RotaryShape,
    StepInputs,
    StoreKv,
    TakeOutputs,
    WeightRef,
)
from kernels.lowering import LinearGroup, LoweredOp, lower
from kernels.torch_attention import AttentionKernel, AttentionOp
from kernels.torch_kv import KvStorage
from kernels.torch_linear import LinearOp, TileWeight, prepare_weight
from kernels.torch_pool import Pool, StoreKvOp
from kernels.torch_rows import (
    EmbeddingOp,
    GatedActivationOp,
    RmsNormOp,
    RotaryOp,
    RotaryTable,
    RowOp,
    TakeOutputsOp,
)
from kernels.torch_step import Limits, Step, Workspace


@dataclass(frozen=True, slots=True)
class CompiledOp:
    """What was recorded and what runs it."""

    op: LoweredOp
    kernel: RowOp


class TorchExecutable:
    """A program bound to weights, a pool and memory for its buffers. Made by `compile_program`."""

    def __init__(self, program: Program, kv_pool: Tensor, limits: Limits) -> None:
        self.program = program
        self.lowered = lower(program)
        self.kv_pool = kv_pool
        self.limits = limits
        self.workspace = Workspace(self.lowered, limits, kv_pool.device)
        self.pool = Pool(kv_pool, KvStorage.of(kv_pool, _head_dim(program, kv_pool)))
        self.attention: dict[AttentionShape, AttentionKernel] = {}
        self.rotary: dict[RotaryShape, RotaryTable] = {}
        self.ops: tuple[CompiledOp, ...] = ()

    def run(self, inputs: StepInputs) -> Tensor:
        """Run one step; returns the logits [outputs, vocabulary], float32 on the device, valid until the next run.

        Raises ValueError when the step is larger than `limits`.
        """
        step = self.prepare(inputs)
        for compiled in self.ops:
            compiled.kernel.run(step)
        return step.view(self.program.logits)[: len(inputs.outputs)]

    def prepare(self, inputs: StepInputs) -> Step:
        """Everything about a step that its ops share."""
        self._check(inputs)
        step = Step(self.workspace, inputs)
        self.pool.prepare(inputs)
        for table in self.rotary.values():
            table.prepare(step.positions, max(inputs.positions))
        for kernel in self.attention.values():
            kernel.prepare(inputs, step.rows)
        return step

    def _check(self, inputs: StepInputs) -> None:
        for name, size, most in (
            ("rows", len(inputs.token_ids), self.limits.max_rows),
            ("outputs", len(inputs.outputs), self.limits.max_outputs),
            ("positions", max(inputs.positions, default=-1) + 1, self.limits.max_positions),
        ):
            if not (name == "outputs" or size) or size > most:
                raise ValueError(f"a step of {size} {name}, compiled for 1 to {most}")


def compile_program(
    program: Program, weights: Mapping[str, Tensor], kv_pool: Tensor, limits: Limits
) -> TorchExecutable:
    """Bind a program to weights and memory on the device of `kv_pool`.

    Shapes: `kv_pool` [pages, layers, 2, page_tokens, kv_heads, width], zero or at least finite, of a `KvStorage`'s type
    and width: float16, float32, or int8 with scales.
    `weights` gives float32 tensors on that device; each is asked for once and let go as soon as it is packed, so it may
    be a mapping that reads them from a file.
    """
    executable = TorchExecutable(program, kv_pool, limits)
    tables = {
        op.table.name: weights[op.table.name] for op in program.ops if isinstance(op, Embedding)
    }
    compiler = _Compiler(executable, tables, weights)
    executable.ops = tuple(CompiledOp(op, compiler.compile(op)) for op in executable.lowered.ops)
    return executable


def weight_bytes(program: Program) -> int:
    """Bytes of the weights as `compile_program` keeps them; an embedding that is also the head counts twice."""
    sizes = []
    for op in program.ops:
        match op:
            case Embedding():
                sizes.append(math.prod(op.table.shape))
            case RmsNorm() | Linear():
                sizes.append(math.prod(op.weight.shape))
            case _:
                pass
    return 4 * sum(sizes)


def packing_bytes(program: Program) -> int:
    """Most bytes needed beside `weight_bytes` while a weight is packed: its parts, and the parts joined."""
    groups = [op for op in lower(program).ops if isinstance(op, LinearGroup)]
    sizes = [sum(math.prod(one.weight.shape) for one in group.members) for group in groups]
    return 2 * 4 * max(sizes, default=0)


def _head_dim(program: Program, kv_pool: Tensor) -> int:
    """Of the program's heads; of the pool's where it stores none."""
    stores = (op.shape.head_dim for op in program.ops if isinstance(op, StoreKv))
    return next(stores, kv_pool.shape[-1])


class _Compiler:
    """Makes the kernel of each op; ops of one shape share tables and plans."""

    def __init__(
        self,
        executable: TorchExecutable,
        tables: Mapping[str, Tensor],
        weights: Mapping[str, Tensor],
    ) -> None:
        self._executable = executable
        self._workspace = executable.workspace
        self._tables = tables
        self._weights = weights

    def compile(self, op: LoweredOp) -> RowOp:
        workspace = self._workspace
        match op:
            case Embedding():
                return EmbeddingOp(op, self._tables[op.table.name])
            case RmsNorm():
                return RmsNormOp(op, self._weight(op.weight), workspace)
            case LinearGroup():
                return LinearOp(op, self._tile_weight(op), workspace)
            case Rotary():
                return RotaryOp(op, self._rotary_table(op.shape), workspace)
            case StoreKv():
                return StoreKvOp(op, self._executable.pool, workspace)
            case PagedAttention():
                return AttentionOp(op, self._attention_kernel(op.shape))
            case GatedActivation():
                return GatedActivationOp(op, workspace)
            case TakeOutputs():
                return TakeOutputsOp(op)
            case _:
                assert_never(op)

    def _weight(self, weight: WeightRef) -> Tensor:
        """An embedding table that is also the head is read once."""
        table = self._tables.get(weight.name)
        return self._weights[weight.name] if table is None else table

    def _tile_weight(self, group: LinearGroup) -> TileWeight:
        weights = [self._weight(member.weight) for member in group.members]
        biases = [self._weight(member.bias) for member in group.members if member.bias]
        return prepare_weight(
            weights[0] if len(weights) == 1 else torch.cat(weights),
            torch.cat(biases) if biases else None,
        )

    def _rotary_table(self, shape: RotaryShape) -> RotaryTable:
        """One table for queries and keys, which differ in the number of heads only."""
        key = replace(shape, heads=1)
        tables = self._executable.rotary
        if key not in tables:
            max_positions = self._executable.limits.max_positions
            tables[key] = RotaryTable(key, max_positions, self._workspace.device)
        return tables[key]

    def _attention_kernel(self, shape: AttentionShape) -> AttentionKernel:
        key = replace(shape, layer=0)
        kernels = self._executable.attention
        if key not in kernels:
            kernels[key] = AttentionKernel(key, self._executable.pool, self._workspace)
        return kernels[key]
