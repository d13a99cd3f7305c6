"""Small whole models on the kernel api, as different architectures record them, with made-up weights."""

from __future__ import annotations

from dataclasses import dataclass

from fakes.native_rig import ModelWeights
from kernels.api import (
    Activation,
    AttentionShape,
    Buffer,
    Program,
    Recorder,
    RotaryShape,
    WeightRef,
)

VOCABULARY = 97


@dataclass(frozen=True, slots=True)
class TinyModel:
    """What differs between architectures. Widths are whole blocks of every storage."""

    storage: str
    hidden: int = 256
    ffn: int = 512
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    head_norms: bool = False
    biases: bool = False
    window: int = 0
    activation: Activation = Activation.SILU
    tied: bool = True


MODELS = {
    "llama": TinyModel("Q4_1"),
    "qwen2": TinyModel("Q8_0", biases=True),
    "qwen3": TinyModel("Q4_K", head_norms=True, tied=False),
    "mistral": TinyModel("Q6_K", window=40, heads=6, kv_heads=1, head_dim=32),
    "gelu": TinyModel("BF16", activation=Activation.GELU_TANH, head_dim=40),
}


class _Recording:
    """One model being recorded."""

    def __init__(self, model: TinyModel, seed: int) -> None:
        self.model = model
        self.weights = ModelWeights(seed)
        self.recorder = Recorder()

    def matrix(self, name: str, outputs: int, inputs: int) -> WeightRef:
        # An attention output may be no whole number of blocks wide; then it is stored as floats.
        storage = self.model.storage if inputs % 256 == 0 else "F16"
        return self.weights.add(name, (outputs, inputs), storage)

    def norm(self, x: Buffer, name: str, size: int) -> Buffer:
        return self.recorder.rms_norm(x, self.weights.add(name, (size,)), epsilon=1e-5)

    def heads(self, h: Buffer, name: str, heads: int) -> Buffer:
        """Query, key or value heads of a layer, rotated unless they are values."""
        model, width = self.model, heads * self.model.head_dim
        bias = self.weights.add(f"{name}.bias", (width,)) if model.biases else None
        x = self.recorder.linear(h, self.matrix(name, width, model.hidden), bias=bias)
        if name.endswith("v"):
            return x
        if model.head_norms:
            x = self.norm(x, f"{name}_norm", model.head_dim)
        dim = model.head_dim
        frequencies = tuple(1e4 ** (-2 * i / dim) for i in range(dim // 2))
        return self.recorder.rotary(x, RotaryShape(heads, dim, dim, frequencies))

    def attention(self, x: Buffer, layer: int) -> Buffer:
        model = self.model
        scale = model.head_dim**-0.5
        shape = AttentionShape(
            layer, model.heads, model.kv_heads, model.head_dim, scale, model.window
        )
        h = self.norm(x, f"{layer}.attn_norm", model.hidden)
        q = self.heads(h, f"{layer}.q", model.heads)
        k = self.heads(h, f"{layer}.k", model.kv_heads)
        v = self.heads(h, f"{layer}.v", model.kv_heads)
        self.recorder.store_kv(k, v, shape)
        out = self.recorder.attention(q, shape)
        weight = self.matrix(f"{layer}.o", model.hidden, model.heads * model.head_dim)
        return self.recorder.linear(out, weight, residual=x)

    def mlp(self, x: Buffer, layer: int) -> Buffer:
        model = self.model
        h = self.norm(x, f"{layer}.ffn_norm", model.hidden)
        gate = self.recorder.linear(h, self.matrix(f"{layer}.gate", model.ffn, model.hidden))
        up = self.recorder.linear(h, self.matrix(f"{layer}.up", model.ffn, model.hidden))
        h = self.recorder.gated_activation(gate, up, model.activation)
        weight = self.matrix(f"{layer}.down", model.hidden, model.ffn)
        return self.recorder.linear(h, weight, residual=x)


def record(model: TinyModel, seed: int = 0) -> tuple[Program, ModelWeights]:
    """The program and its weights."""
    recording = _Recording(model, seed)
    table = recording.matrix("embedding", VOCABULARY, model.hidden)
    x = recording.recorder.embedding(table)
    for layer in range(model.layers):
        x = recording.mlp(recording.attention(x, layer), layer)
    x = recording.norm(recording.recorder.take_outputs(x), "norm", model.hidden)
    head = table if model.tied else recording.matrix("head", VOCABULARY, model.hidden)
    return recording.recorder.finish(recording.recorder.linear(x, head)), recording.weights
