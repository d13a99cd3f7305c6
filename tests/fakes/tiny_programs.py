"""Recorded programs of a few layers with random weights, and steps of them; for tests of the kernels alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from kernels.api import (
    Activation,
    AttentionShape,
    Buffer,
    Program,
    Recorder,
    RotaryShape,
    StepInputs,
    WeightRef,
)
from kernels.kv_layout import KvType
from kernels.torch_kv import KvStorage

PAGE_TOKENS = 32


@dataclass(frozen=True, slots=True)
class TinyProgram:
    """Sizes and switches of a decoder; the defaults are of a plain one with grouped heads."""

    layers: int = 2
    hidden: int = 48
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 80
    vocabulary: int = 100
    windows: tuple[int, ...] = (0, 0)
    activation: Activation = Activation.SILU
    bias: bool = False
    qk_norm: bool = False
    rotary_dim: int = 0
    """0: the whole head."""

    def record(self) -> Program:
        recorder = Recorder()
        table = WeightRef("embed", (self.vocabulary, self.hidden))
        x = recorder.embedding(table, scale=2.0)
        for layer in range(self.layers):
            x = self._attention(recorder, layer, x)
            x = self._mlp(recorder, layer, x)
        x = recorder.rms_norm(
            recorder.take_outputs(x), WeightRef("norm", (self.hidden,)), epsilon=1e-5
        )
        return recorder.finish(recorder.linear(x, table))

    def pool(self, pages: int = 16, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        kinds = {torch.float16: KvType.F16, torch.float32: KvType.F32, torch.int8: KvType.Q8_0}
        width = KvStorage(kinds[dtype], self.head_dim).width
        shape = (pages, self.layers, 2, PAGE_TOKENS, self.kv_heads, width)
        return torch.zeros(shape, dtype=dtype)

    def attention_shape(self, layer: int) -> AttentionShape:
        return AttentionShape(
            layer=layer,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            scale=self.head_dim**-0.5,
            window=self.windows[layer],
        )

    def rotary_shape(self, heads: int) -> RotaryShape:
        rotary_dim = self.rotary_dim or self.head_dim
        frequencies = tuple(100.0 ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2))
        return RotaryShape(heads, self.head_dim, rotary_dim, frequencies, magnitude=1.1)

    def _attention(self, recorder: Recorder, layer: int, x: Buffer) -> Buffer:
        normed = recorder.rms_norm(x, WeightRef(f"{layer}.attn_norm", (self.hidden,)), epsilon=1e-5)
        projected = []
        for part, heads in (("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads)):
            width = heads * self.head_dim
            bias = WeightRef(f"{layer}.{part}.bias", (width,)) if self.bias else None
            weight = WeightRef(f"{layer}.{part}", (width, self.hidden))
            projected.append(recorder.linear(normed, weight, bias=bias))
        query, key, value = projected
        if self.qk_norm:
            norm = WeightRef(f"{layer}.qk_norm", (self.head_dim,))
            query = recorder.rms_norm(query, norm, epsilon=1e-5)
            key = recorder.rms_norm(key, norm, epsilon=1e-5)
        query = recorder.rotary(query, self.rotary_shape(self.heads))
        key = recorder.rotary(key, self.rotary_shape(self.kv_heads))
        shape = self.attention_shape(layer)
        recorder.store_kv(key, value, shape)
        attended = recorder.attention(query, shape)
        weight = WeightRef(f"{layer}.o", (self.hidden, attended.width))
        return recorder.linear(attended, weight, residual=x)

    def _mlp(self, recorder: Recorder, layer: int, x: Buffer) -> Buffer:
        normed = recorder.rms_norm(x, WeightRef(f"{layer}.mlp_norm", (self.hidden,)), epsilon=1e-5)
        gate = recorder.linear(normed, WeightRef(f"{layer}.gate", (self.ffn, self.hidden)))
        up = recorder.linear(normed, WeightRef(f"{layer}.up", (self.ffn, self.hidden)))
        active = recorder.gated_activation(gate, up, self.activation)
        weight = WeightRef(f"{layer}.down", (self.hidden, self.ffn))
        return recorder.linear(active, weight, residual=x)


def random_weights(program: Program, seed: int = 0) -> dict[str, torch.Tensor]:
    """Matrices that keep the size of their input, norms around 1."""
    random = torch.Generator().manual_seed(seed)
    weights = {}
    for ref in program.weights:
        values = torch.randn(ref.shape, generator=random)
        is_matrix = len(ref.shape) == 2
        weights[ref.name] = values * ref.shape[1] ** -0.5 if is_matrix else 1 + 0.1 * values
    return weights


@dataclass(frozen=True, slots=True)
class Share:
    """Tokens [start, start + count) of a sequence in one step; its last token's logits are wanted if `samples`."""

    token_ids: list[int]
    start: int
    count: int
    table: list[int]
    samples: bool = True


def step_of(shares: Iterable[Share]) -> StepInputs:
    """The step of these shares, in order."""
    step = StepInputs([], [], [], [], [])
    for index, share in enumerate(shares):
        stop = share.start + share.count
        step.token_ids.extend(share.token_ids[share.start : stop])
        step.positions.extend(range(share.start, stop))
        step.sequences.extend([index] * share.count)
        step.page_tables.append(share.table)
        if share.samples:
            step.outputs.append(len(step.token_ids) - 1)
    return step


def random_tokens(count: int, seed: int, vocabulary: int = 100) -> list[int]:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(vocabulary, (count,), generator=random).tolist()
