"""The tiny model of the tests, apart from files: its sizes, its vocabulary, its random weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_MERGED_WORDS = [
    "the",
    "ing",
    "and",
    "hello",
    "Ġworld",
    "user",
    "system",
    "assistant",
    "Ġthe",
    "Ġis",
    "you",
]


@dataclass(frozen=True, slots=True)
class TinyShape:
    """The sizes of a tiny model; qwen3 has `head_dim` apart from width / heads."""

    width: int = 64
    hidden: int = 128
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16


SMALL_SHAPE = TinyShape(width=576, hidden=1536, layers=30, heads=9, kv_heads=3, head_dim=64)
"""That of a model of 135 million parameters, for timings and for shapes that libraries treat in their own ways."""
LARGE_LAYER = TinyShape(width=4096, hidden=14336, layers=1, heads=32, kv_heads=8, head_dim=128)
"""One layer of a model of 8 billion parameters."""
WIDE_SHAPE = TinyShape(width=256, hidden=256, head_dim=64)
"""Its matrices take 256 inputs, the largest block of any storage."""


def tiny_shape(model_type: str) -> TinyShape:
    """The sizes of the tiny model of "llama", "mistral", "qwen2" or "qwen3"."""
    return TinyShape(head_dim=32) if model_type == "qwen3" else TinyShape()


def byte_characters() -> list[str]:
    """The 256 printable characters that stand for bytes 0 to 255 in a byte-level vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def tiny_vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens in id order (control tokens first) and the merges."""
    merges: list[tuple[str, str]] = []
    for word in _MERGED_WORDS:
        for end in range(1, len(word)):
            pair = (word[:end], word[end])
            if pair not in merges:
                merges.append(pair)
    return [*CONTROL_TOKENS, *byte_characters(), *(a + b for a, b in merges)], merges


def tiny_weights(
    model_type: str = "llama",
    seed: int = 0,
    *,
    tied: bool = True,
    shape: TinyShape | None = None,
) -> dict[str, np.ndarray]:
    """Seeded random float32 weights under Hugging Face names, [out, in].

    `tied` leaves `lm_head.weight` out; `shape` is another than the tiny one.
    """
    shape = shape or tiny_shape(model_type)
    random = np.random.default_rng(seed)
    vocabulary = len(tiny_vocabulary()[0])

    def linear(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * columns**-0.5).astype(np.float32)

    def norm(size: int) -> np.ndarray:
        return (1 + 0.1 * random.standard_normal(size)).astype(np.float32)

    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    weights = {"model.embed_tokens.weight": linear(vocabulary, shape.width)}
    for layer in range(shape.layers):
        block = f"model.layers.{layer}."
        weights[block + "input_layernorm.weight"] = norm(shape.width)
        for name, rows in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
            weights[f"{block}self_attn.{name}.weight"] = linear(rows, shape.width)
            if model_type == "qwen2":
                weights[f"{block}self_attn.{name}.bias"] = norm(rows) - 1
        if model_type == "qwen3":
            weights[block + "self_attn.q_norm.weight"] = norm(shape.head_dim)
            weights[block + "self_attn.k_norm.weight"] = norm(shape.head_dim)
        weights[block + "self_attn.o_proj.weight"] = linear(shape.width, queries)
        weights[block + "post_attention_layernorm.weight"] = norm(shape.width)
        weights[block + "mlp.gate_proj.weight"] = linear(shape.hidden, shape.width)
        weights[block + "mlp.up_proj.weight"] = linear(shape.hidden, shape.width)
        weights[block + "mlp.down_proj.weight"] = linear(shape.width, shape.hidden)
    weights["model.norm.weight"] = norm(shape.width)
    if not tied:
        weights["lm_head.weight"] = linear(vocabulary, shape.width)
    return weights
