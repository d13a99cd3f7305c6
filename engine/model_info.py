"""What is known of a model's files before they are loaded.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """Facts about a model's files, read without loading the weights."""

    name: str
    path: Path
    architecture: str
    quantization: str
    parameters: int
    size_bytes: int
    context_tokens: int
    has_chat_template: bool
    created_s: int
    """Unix time of the file, for /v1/models."""
    kv_values_per_token: int = 0
    """Numbers that the pool keeps for each token, keys and values of all layers; 0 where the files do not say."""
    license: str = ""
    """As the files say it; empty where they do not."""
    thinks: bool = False
    """Its chat template tells thoughts from the answer."""
    embedding_size: int = 0
    """Numbers of an embedding; 0: the model writes text."""
