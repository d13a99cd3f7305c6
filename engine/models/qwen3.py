"""Qwen3: Llama's layers with a norm over each head of queries and keys, before rotation. Records only; no torch.

Source: Qwen3 (arXiv 2505.09388) as published in the Hugging Face format.
"""

from __future__ import annotations

from engine.models.architecture import LAYER_NAMES, Architecture
from engine.models.layers import attention_block, embedding, gated_mlp_block, head
from engine.models.spec import ModelSpec
from kernels.api import Program, Recorder


def record(spec: ModelSpec) -> Program:
    """One step of the model."""
    recorder = Recorder()
    x = embedding(recorder, spec)
    for layer in range(spec.layers):
        x = attention_block(recorder, spec, layer, x, qk_norm=True)
        x = gated_mlp_block(recorder, spec, layer, x)
    return recorder.finish(head(recorder, spec, x))


ARCHITECTURE = Architecture(
    record,
    layer_names={
        **LAYER_NAMES,
        "attn.q_norm": ("attn_q_norm", "self_attn.q_norm"),
        "attn.k_norm": ("attn_k_norm", "self_attn.k_norm"),
    },
)
