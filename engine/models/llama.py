"""The Llama family: Llama, SmolLM, and Mistral, whose layers may have a sliding window. Records only; no torch.

Source: Llama (arXiv 2302.13971) as published in the Hugging Face format.
"""

from __future__ import annotations

from engine.models.architecture import Architecture
from engine.models.layers import attention_block, embedding, gated_mlp_block, head
from engine.models.spec import ModelSpec
from kernels.api import Program, Recorder


def record(spec: ModelSpec) -> Program:
    """One step of the model."""
    recorder = Recorder()
    x = embedding(recorder, spec)
    for layer in range(spec.layers):
        x = attention_block(recorder, spec, layer, x)
        x = gated_mlp_block(recorder, spec, layer, x)
    return recorder.finish(head(recorder, spec, x))


ARCHITECTURE = Architecture(record, gguf_pairs_rotary=True)
