"""Qwen2 and Qwen2.5: Llama's layers, always with biases on queries, keys and values. Records only; no torch.

Source: Qwen2 (arXiv 2407.10671) as published in the Hugging Face format.
"""

from __future__ import annotations

from dataclasses import replace

from engine.models import llama
from engine.models.architecture import Architecture
from engine.models.spec import ModelSpec
from kernels.api import Program


def record(spec: ModelSpec) -> Program:
    """One step of the model."""
    return llama.record(replace(spec, qkv_bias=True, output_bias=False))


ARCHITECTURE = Architecture(record)
