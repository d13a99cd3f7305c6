"""Every op in plain torch, as short as it can be: the specification that back ends are tested against.

Slow, and exact only up to rounding: sums run in whatever order torch likes. Attention gathers each row's keys and
values and computes one softmax in float64. Used by tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.api import (
    Activation,
    AttentionShape,
    Embedding,
    GatedActivation,
    Linear,
    Op,
    PagedAttention,
    Program,
    RmsNorm,
    Rotary,
    RotaryShape,
    StepInputs,
    StoreKv,
    TakeOutputs,
)
from kernels.kv_layout import KV_GROUP

_RowOp = (
    Embedding | RmsNorm | Linear | Rotary | PagedAttention | GatedActivation | TakeOutputs
)  # all that give rows


def run_reference(
    program: Program,
    weights: Mapping[str, Tensor],
    kv_pool: Tensor,
    inputs: StepInputs,
    *,
    keep: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Run one step; writes `kv_pool` and returns the logits [outputs, vocabulary], float32.

    `keep` gives what a way of storing heads leaves of them, as `round_to_bytes`; None: what the pool's type does.
    Shapes: `kv_pool` [pages, layers, 2, page_tokens, kv_heads, head_dim], float16 or float32.
    """
    run = _Run(weights, kv_pool, inputs, keep)
    for op in program.ops:
        run.compute(op)
    return run.rows[program.logits.index]


class _Run:
    """One step; `rows` holds every buffer computed so far, by its index."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        kv_pool: Tensor,
        inputs: StepInputs,
        keep: Callable[[Tensor], Tensor] | None,
    ) -> None:
        self.rows: dict[int, Tensor] = {}
        self._weights = weights
        self._kv_pool = kv_pool
        self._inputs = inputs
        self._keep = keep

    def compute(self, op: Op) -> None:
        if isinstance(op, StoreKv):
            self._store_kv(op)
        else:
            self.rows[op.out.index] = self._result(op)

    def _result(self, op: _RowOp) -> Tensor:
        rows, weights = self.rows, self._weights
        match op:
            case Embedding():
                return weights[op.table.name][torch.tensor(self._inputs.token_ids)] * op.scale
            case RmsNorm():
                return rms_norm(rows[op.x.index], weights[op.weight.name], op.epsilon)
            case Linear():
                bias = weights[op.bias.name] if op.bias else None
                out = F.linear(rows[op.x.index], weights[op.weight.name], bias)
                return out if op.residual is None else out + rows[op.residual.index]
            case Rotary():
                positions = torch.tensor(self._inputs.positions)
                return rotary(rows[op.x.index], positions, op.shape)
            case PagedAttention():
                return paged_attention(rows[op.query.index], self._kv_pool, self._inputs, op.shape)
            case GatedActivation():
                return activate(rows[op.gate.index], op.activation) * rows[op.up.index]
            case TakeOutputs():
                return rows[op.x.index][torch.tensor(self._inputs.outputs, dtype=torch.int64)]
            case _:
                assert_never(op)

    def _store_kv(self, op: StoreKv) -> None:
        """Write keys and values at their positions; too large ones become the pool type's largest, NaN becomes 0."""
        pool, shape, inputs = self._kv_pool, op.shape, self._inputs
        limit, page_tokens = torch.finfo(pool.dtype).max, pool.shape[3]
        places = zip(inputs.sequences, inputs.positions, strict=True)
        for row, (sequence, position) in enumerate(places):
            page = inputs.page_tables[sequence][position // page_tokens]
            for kind, buffer in enumerate((op.key, op.value)):
                kept = self.rows[buffer.index][row].clamp(-limit, limit).nan_to_num(0.0)
                heads = kept.reshape(shape.kv_heads, shape.head_dim)
                if self._keep is not None:
                    heads = self._keep(heads)
                pool[page, shape.layer, kind, position % page_tokens] = heads


def round_to_bytes(heads: Tensor) -> Tensor:
    """What is left of heads [..., head_dim] stored as `kv_layout.KvType.Q8_0`, for each 32 dimensions alone."""
    rounded = []
    for start in range(0, heads.shape[-1], KV_GROUP):
        group = heads[..., start : start + KV_GROUP]
        scale = (group.abs().amax(-1, keepdim=True) / 127).half().float()
        inverse = torch.where(scale > 0, 1 / scale, 0.0)
        codes = (group * inverse).round().clamp(-127, 127)
        rounded.append(codes * scale)
    return torch.cat(rounded, dim=-1)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Each group as long as `weight` divided by its root mean square, times `weight`."""
    groups = x.reshape(x.shape[0], -1, weight.shape[0])
    mean_square = groups.square().mean(-1, keepdim=True)
    return (groups * torch.rsqrt(mean_square + epsilon) * weight).reshape(x.shape)


def activate(x: Tensor, activation: Activation) -> Tensor:
    """The gate function."""
    match activation:
        case Activation.SILU:
            return F.silu(x)
        case Activation.GELU_TANH:
            return F.gelu(x, approximate="tanh")
        case _:
            assert_never(activation)


def rotary(x: Tensor, positions: Tensor, shape: RotaryShape) -> Tensor:
    """Values i and i + rotary_dim / 2 of each head turned as a pair by position * inverse_frequencies[i]."""
    angles = torch.outer(positions.double(), torch.tensor(shape.inverse_frequencies).double())
    cos = (angles.cos() * shape.magnitude).float()[:, None]
    sin = (angles.sin() * shape.magnitude).float()[:, None]
    heads = x.reshape(x.shape[0], shape.heads, shape.head_dim)
    half = shape.rotary_dim // 2
    a, b = heads[..., :half], heads[..., half : 2 * half]
    turned = [a * cos - b * sin, b * cos + a * sin, heads[..., 2 * half :]]
    return torch.cat(turned, dim=-1).reshape(x.shape)


def paged_attention(
    query: Tensor, kv_pool: Tensor, inputs: StepInputs, shape: AttentionShape
) -> Tensor:
    """softmax(scale * q · k) · v over the positions [0, own position], or the last `window` of them."""
    page_tokens = kv_pool.shape[3]
    out = torch.empty_like(query)
    for row, (sequence, position) in enumerate(
        zip(inputs.sequences, inputs.positions, strict=True)
    ):
        pages = inputs.page_tables[sequence][: math.ceil((position + 1) / page_tokens)]
        kv = kv_pool[torch.tensor(pages), shape.layer].transpose(0, 1).flatten(1, 2).double()
        first = max(0, position + 1 - shape.window) if shape.window else 0
        keys, values = kv[:, first : position + 1].transpose(1, 2)
        q = query[row].double().reshape(shape.kv_heads, -1, shape.head_dim)
        weights = torch.softmax(shape.scale * q @ keys.transpose(1, 2), dim=-1)
        out[row] = (weights @ values).reshape(-1).float()
    return out
