"""Blocks that architectures are put together from, recorded on `kernels.api`. No tensor library; used once, at load.

Weights have canonical names ("layers.3.attn.q.weight"); `engine.models.weight_map` finds them in a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.spec import ModelSpec
from kernels.api import AttentionShape, Buffer, Recorder, RotaryShape, WeightRef


@dataclass(frozen=True, slots=True)
class LayerNames:
    """Canonical names of one layer's weights."""

    layer: int

    def weight(self, part: str, *shape: int) -> WeightRef:
        return WeightRef(f"layers.{self.layer}.{part}.weight", shape)

    def bias(self, part: str, size: int, *, present: bool) -> WeightRef | None:
        return WeightRef(f"layers.{self.layer}.{part}.bias", (size,)) if present else None


def attention_block(
    recorder: Recorder, spec: ModelSpec, layer: int, x: Buffer, *, qk_norm: bool = False
) -> Buffer:
    """Norm, queries, keys and values (with a norm for each head of the first two), attention, projection, residual."""
    names = LayerNames(layer)
    normed = recorder.rms_norm(x, names.weight("attn_norm", spec.hidden), epsilon=spec.norm_epsilon)

    def project(part: str, heads: int) -> Buffer:
        width = heads * spec.head_dim
        weight = names.weight(f"attn.{part}", width, spec.hidden)
        bias = names.bias(f"attn.{part}", width, present=spec.qkv_bias)
        return recorder.linear(normed, weight, bias=bias)

    query, key = project("q", spec.heads), project("k", spec.kv_heads)
    value = project("v", spec.kv_heads)
    if qk_norm:
        query = recorder.rms_norm(
            query, names.weight("attn.q_norm", spec.head_dim), epsilon=spec.norm_epsilon
        )
        key = recorder.rms_norm(
            key, names.weight("attn.k_norm", spec.head_dim), epsilon=spec.norm_epsilon
        )
    query = recorder.rotary(query, _rotary_shape(spec, spec.heads))
    key = recorder.rotary(key, _rotary_shape(spec, spec.kv_heads))
    shape = AttentionShape(
        layer=layer,
        heads=spec.heads,
        kv_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        scale=spec.head_dim**-0.5,
        window=spec.windows[layer],
    )
    recorder.store_kv(key, value, shape)
    attended = recorder.attention(query, shape)
    weight = names.weight("attn.o", spec.hidden, spec.heads * spec.head_dim)
    bias = names.bias("attn.o", spec.hidden, present=spec.output_bias)
    return recorder.linear(attended, weight, bias=bias, residual=x)


def gated_mlp_block(recorder: Recorder, spec: ModelSpec, layer: int, x: Buffer) -> Buffer:
    """Norm, gate and up projections, activation, down projection, residual."""
    names = LayerNames(layer)
    normed = recorder.rms_norm(x, names.weight("mlp_norm", spec.hidden), epsilon=spec.norm_epsilon)

    def project(part: str) -> Buffer:
        weight = names.weight(f"mlp.{part}", spec.ffn, spec.hidden)
        bias = names.bias(f"mlp.{part}", spec.ffn, present=spec.mlp_bias)
        return recorder.linear(normed, weight, bias=bias)

    active = recorder.gated_activation(project("gate"), project("up"), spec.activation)
    weight = names.weight("mlp.down", spec.hidden, spec.ffn)
    bias = names.bias("mlp.down", spec.hidden, present=spec.mlp_bias)
    return recorder.linear(active, weight, bias=bias, residual=x)


def embedding(recorder: Recorder, spec: ModelSpec) -> Buffer:
    """The step's tokens as rows of the embedding table."""
    return recorder.embedding(WeightRef("embed.weight", (spec.vocab_size, spec.hidden)))


def head(recorder: Recorder, spec: ModelSpec, x: Buffer) -> Buffer:
    """The last norm and the vocabulary's logits, for the rows where they are wanted; for embeddings the norm alone."""
    x = recorder.take_outputs(x)
    norm = WeightRef("final_norm.weight", (spec.hidden,))
    x = recorder.rms_norm(x, norm, epsilon=spec.norm_epsilon)
    if spec.gives_embeddings:
        return x
    name = "embed.weight" if spec.tied_embeddings else "head.weight"
    return recorder.linear(x, WeightRef(name, (spec.vocab_size, spec.hidden)))


def _rotary_shape(spec: ModelSpec, heads: int) -> RotaryShape:
    return RotaryShape(
        heads=heads,
        head_dim=spec.head_dim,
        rotary_dim=spec.head_dim,
        inverse_frequencies=spec.rope.inverse_frequencies,
        magnitude=spec.rope.magnitude,
    )
