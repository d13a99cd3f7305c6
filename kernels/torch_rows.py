"""The ops that treat each row by itself: embedding, norms, rotary embedding, gated activations, picking outputs.

Additions, products, roots and reductions over whole rows give the same bits wherever a row stands. Functions that torch
computes with different code in the middle and at the end of a stretch of memory (silu, gelu) are the exception: they
run on pieces that one thread takes row by row. Engine thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from kernels.api import (
    Activation,
    Embedding,
    GatedActivation,
    RmsNorm,
    Rotary,
    RotaryShape,
    TakeOutputs,
)
from kernels.torch_step import Step, Workspace

_SERIAL_ELEMENTS = 32_767
"""torch cuts elementwise work of more than this among threads, at any element."""
_ROW_GAP = 32
"""Unused columns after each row of a scratch matrix, so that torch goes through it row by row."""

_TABLE_BLOCK = 1024


class RowOp(Protocol):
    """An op of a compiled program."""

    def run(self, step: Step) -> None:
        """Compute the step's rows."""


class EmbeddingOp:
    """Rows of a table by token id."""

    def __init__(self, op: Embedding, table: Tensor) -> None:
        self._op = op
        self._table = table

    def run(self, step: Step) -> None:
        out = step.view(self._op.out)
        torch.index_select(self._table, 0, step.token_ids, out=out)
        if self._op.scale != 1.0:
            out.mul_(self._op.scale)


class RmsNormOp:
    """Root mean square norm of whole rows or of each head."""

    def __init__(self, op: RmsNorm, weight: Tensor, workspace: Workspace) -> None:
        self._op = op
        self._weight = weight
        self._scratch = workspace.scratch
        self._key = workspace.key(f"rms_norm {op.group}", op.x, op.out)

    def run(self, step: Step) -> None:
        x, out, squares, factor = step.bound(self._key, self._bind)
        torch.mul(x, x, out=squares)
        torch.mean(squares, -1, keepdim=True, out=factor)
        factor.add_(self._op.epsilon).rsqrt_()
        torch.mul(x, factor, out=out)
        out.mul_(self._weight)

    def _bind(self, step: Step) -> tuple[Tensor, ...]:
        x, out = step.view(self._op.x), step.view(self._op.out)
        groups = (len(x), self._op.x.width // self._op.group, self._op.group)
        squares = self._scratch.take("squares", *groups)
        return x.view(groups), out.view(groups), squares, squares.new_empty(*groups[:2], 1)


class RotaryTable:
    """Cosines and sines by position for one shape, computed as far as positions have come, always in whole blocks."""

    def __init__(self, shape: RotaryShape, max_positions: int, device: torch.device) -> None:
        self._frequencies = np.array(shape.inverse_frequencies)
        self._magnitude = shape.magnitude
        size = -(-max_positions // _TABLE_BLOCK) * _TABLE_BLOCK
        self._table = torch.empty(size, 2, len(self._frequencies), device=device)
        self._filled = 0
        self.cos = self.sin = torch.empty(0)

    def prepare(self, positions: Tensor, last: int) -> None:
        """Take the rows of a step; `last` is its largest position."""
        while self._filled <= last:
            self._fill_block()
        rows = self._table.index_select(0, positions)
        self.cos, self.sin = rows[:, :1], rows[:, 1:]

    def _fill_block(self) -> None:
        start, stop = self._filled, self._filled + _TABLE_BLOCK
        angles = np.outer(np.arange(start, stop), self._frequencies)
        both = np.stack([np.cos(angles), np.sin(angles)], axis=1) * self._magnitude
        self._table[start:stop] = torch.from_numpy(both.astype(np.float32))
        self._filled = stop


class RotaryOp:
    """Turns each head's pairs of values by the row's position."""

    def __init__(self, op: Rotary, table: RotaryTable, workspace: Workspace) -> None:
        self._op = op
        self._table = table
        self._scratch = workspace.scratch
        self._key = workspace.key(f"rotary {op.shape.heads} {op.shape.rotary_dim}", op.x, op.out)

    def run(self, step: Step) -> None:
        a, b, rest, out_a, out_b, out_rest, product = step.bound(self._key, self._bind)
        cos, sin = self._table.cos, self._table.sin
        torch.mul(a, cos, out=out_a)
        out_a.sub_(torch.mul(b, sin, out=product))
        torch.mul(b, cos, out=out_b)
        out_b.add_(torch.mul(a, sin, out=product))
        if self._op.shape.rotary_dim < self._op.shape.head_dim:
            out_rest.copy_(rest)

    def _bind(self, step: Step) -> tuple[Tensor, ...]:
        shape = self._op.shape
        heads = (step.rows, shape.heads, shape.head_dim)
        half = shape.rotary_dim // 2
        sizes = [half, half, shape.head_dim - 2 * half]
        x = torch.split(step.view(self._op.x).view(heads), sizes, dim=-1)
        out = torch.split(step.view(self._op.out).view(heads), sizes, dim=-1)
        return *x, *out, self._scratch.take("product", step.rows, shape.heads, half)


def activation_function(activation: Activation) -> Callable[[Tensor, Tensor], object]:
    """The gate function as f(x, out)."""
    if activation is Activation.SILU:
        return lambda x, out: torch.ops.aten.silu.out(x, out=out)
    return lambda x, out: torch.ops.aten.gelu.out(x, approximate="tanh", out=out)


class GatedActivationOp:
    """activation(gate) * up."""

    def __init__(self, op: GatedActivation, workspace: Workspace) -> None:
        self._op = op
        self._activate = activation_function(op.activation)
        self._scratch = workspace.scratch
        self._key = workspace.key(op.activation.value, op.gate, op.up, op.out)

    def run(self, step: Step) -> None:
        active, up, out, *pieces = step.bound(self._key, self._bind)
        for gate_piece, active_piece in zip(pieces[::2], pieces[1::2], strict=True):
            self._activate(gate_piece, active_piece)
        torch.mul(active, up, out=out)

    def _bind(self, step: Step) -> tuple[Tensor, ...]:
        gate, up, out = (step.view(one) for one in (self._op.gate, self._op.up, self._op.out))
        width = self._op.out.width
        active = self._scratch.take("active", len(out), width + _ROW_GAP)[:, :width]
        pairs = zip(_pieces(gate), _pieces(active), strict=True)
        return active, up, out, *(piece for pair in pairs for piece in pair)


def _pieces(x: Tensor) -> list[Tensor]:
    """Cut [rows, width] so that one thread takes each piece whole; a row's columns are cut alike wherever it stands."""
    width = x.shape[1]
    if width <= _SERIAL_ELEMENTS:
        return list(torch.split(x, max(1, _SERIAL_ELEMENTS // width)))
    columns = torch.split(x, _SERIAL_ELEMENTS // 2 + 1, dim=1)
    return [row for piece in columns for row in torch.split(piece, 1)]


class TakeOutputsOp:
    """The rows whose logits are wanted."""

    def __init__(self, op: TakeOutputs) -> None:
        self._op = op

    def run(self, step: Step) -> None:
        torch.index_select(step.view(self._op.x), 0, step.output_rows, out=step.view(self._op.out))
