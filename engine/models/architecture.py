"""What an architecture gives: how its step is recorded, and what its weights are called in files. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.models.spec import ModelSpec
from kernels.api import Program

Names = Mapping[str, tuple[str, str]]
"""Canonical part of a name -> (what GGUF calls it, what Hugging Face calls it), without layer and ending."""

OUTER_NAMES: Names = {
    "embed": ("token_embd", "model.embed_tokens"),
    "final_norm": ("output_norm", "model.norm"),
    "head": ("output", "lm_head"),
}
LAYER_NAMES: Names = {
    "attn_norm": ("attn_norm", "input_layernorm"),
    "attn.q": ("attn_q", "self_attn.q_proj"),
    "attn.k": ("attn_k", "self_attn.k_proj"),
    "attn.v": ("attn_v", "self_attn.v_proj"),
    "attn.o": ("attn_output", "self_attn.o_proj"),
    "mlp_norm": ("ffn_norm", "post_attention_layernorm"),
    "mlp.gate": ("ffn_gate", "mlp.gate_proj"),
    "mlp.up": ("ffn_up", "mlp.up_proj"),
    "mlp.down": ("ffn_down", "mlp.down_proj"),
}
"""What the Llama family shares."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """One entry of the registry."""

    record: Callable[[ModelSpec], Program]
    layer_names: Names = field(default_factory=lambda: LAYER_NAMES)
    gguf_pairs_rotary: bool = False
    """GGUF files have the rows of query and key weights in rotary pairs (2i, 2i + 1); they are put back at load."""
