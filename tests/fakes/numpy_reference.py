"""A recorded program run in plain numpy and float64, op by op: the specification that native kernels are held to.

Keys and values are kept by (sequence, layer, position), so that no page can hide a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernels.api import (
    Activation,
    Embedding,
    GatedActivation,
    Linear,
    PagedAttention,
    Program,
    RmsNorm,
    Rotary,
    StepInputs,
    StoreKv,
    TakeOutputs,
)
from kernels.kv_layout import KV_GROUP, KvType

Matrix = NDArray[np.float64]


def silu(x: Matrix) -> Matrix:
    return x / (1 + np.exp(-np.maximum(x, -700)))


def gelu_tanh(x: Matrix) -> Matrix:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: Mapping[Activation, Callable[[Matrix], Matrix]] = {
    Activation.SILU: silu,
    Activation.GELU_TANH: gelu_tanh,
}


def round_to_bytes(heads: Matrix) -> Matrix:
    """What is left of heads [..., head_dim] stored as Q8_0: see `kv_layout.KvType`. In float32, as kernels compute."""
    exact, rounded = heads.astype(np.float32), np.empty(heads.shape)
    for start in range(0, heads.shape[-1], KV_GROUP):
        group = exact[..., start : start + KV_GROUP]
        largest = np.abs(group).max(axis=-1, keepdims=True)
        scale = (largest / np.float32(127)).astype(np.float16).astype(np.float32)
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
        codes = np.rint(group * inverse).clip(-127, 127)
        rounded[..., start : start + KV_GROUP] = codes * scale.astype(np.float64)
    return rounded


@dataclass(slots=True)
class NumpyProgram:
    """`weights` are the dequantised tensors by name. Keys and values are kept as they are, or as Q8_0 leaves them."""

    program: Program
    weights: Mapping[str, NDArray[np.float32]]
    kv_type: KvType = KvType.F32
    kept: dict[tuple[int, int, int], tuple[Matrix, Matrix]] = field(default_factory=dict)

    def run(self, inputs: StepInputs) -> Matrix:
        values: dict[int, Matrix] = {}
        for op in self.program.ops:
            if isinstance(op, StoreKv):
                self._store(op, values, inputs)
            else:
                values[op.out.index] = self._compute(op, values, inputs)
        return values[self.program.logits.index]

    def _compute(self, op: object, values: Mapping[int, Matrix], inputs: StepInputs) -> Matrix:
        match op:
            case Embedding(table=table, scale=scale):
                return self.weights[table.name][inputs.token_ids].astype(np.float64) * scale
            case RmsNorm(x=x, weight=weight, epsilon=epsilon, group=group):
                groups = values[x.index].reshape(-1, group)
                mean = np.mean(groups**2, axis=1, keepdims=True)
                out = groups / np.sqrt(mean + epsilon) * self.weights[weight.name]
                return out.reshape(values[x.index].shape)
            case Linear(x=x, weight=weight, bias=bias, residual=residual):
                out = values[x.index] @ self.weights[weight.name].astype(np.float64).T
                out = out if bias is None else out + self.weights[bias.name]
                return out if residual is None else out + values[residual.index]
            case Rotary():
                return self._rotate(op, values[op.x.index], inputs)
            case GatedActivation(gate=gate, up=up, activation=activation):
                return ACTIVATIONS[activation](values[gate.index]) * values[up.index]
            case TakeOutputs(x=x):
                return values[x.index][inputs.outputs]
            case PagedAttention(query=query):
                rows = values[query.index]
                return np.stack([self._attend(op, rows[r], r, inputs) for r in range(len(rows))])
        raise TypeError(op)

    def _rotate(self, op: Rotary, x: Matrix, inputs: StepInputs) -> Matrix:
        shape = op.shape
        half = shape.rotary_dim // 2
        angles = np.outer(inputs.positions, np.array(shape.inverse_frequencies, np.float32))
        cosine, sine = (f(angles)[:, None, :] * shape.magnitude for f in (np.cos, np.sin))
        heads = x.reshape(len(x), shape.heads, shape.head_dim).copy()
        first, second = heads[..., :half], heads[..., half : 2 * half]
        first[...], second[...] = (
            first * cosine - second * sine,
            first * sine + second * cosine,
        )
        return heads.reshape(x.shape)

    def _store(self, op: StoreKv, values: Mapping[int, Matrix], inputs: StepInputs) -> None:
        shape = (-1, op.shape.kv_heads, op.shape.head_dim)
        keys, rows = (values[b.index].reshape(shape) for b in (op.key, op.value))
        if self.kv_type is KvType.Q8_0:
            keys, rows = round_to_bytes(keys), round_to_bytes(rows)
        for r, position in enumerate(inputs.positions):
            self.kept[inputs.sequences[r], op.shape.layer, position] = (keys[r], rows[r])

    def _attend(self, op: PagedAttention, row: Matrix, r: int, inputs: StepInputs) -> Matrix:
        shape, position, sequence = op.shape, inputs.positions[r], inputs.sequences[r]
        first = max(0, position - shape.window + 1) if shape.window else 0
        kept = [self.kept[sequence, shape.layer, p] for p in range(first, position + 1)]
        keys, rows = (np.stack(side) for side in zip(*kept, strict=True))
        out = []
        for head, query in enumerate(row.reshape(shape.heads, shape.head_dim)):
            kv_head = head // (shape.heads // shape.kv_heads)
            scores = keys[:, kv_head] @ query * shape.scale
            weights = np.exp(scores - scores.max())
            out.append(weights @ rows[:, kv_head] / weights.sum())
        return np.concatenate(out)
