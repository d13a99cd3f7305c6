"""A model of hyper-parameters only: no file, no weights. For tests of what is read from metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.formats.base import FileFormat, FolderText, TensorInfo

GGUF_METADATA: Mapping[str, object] = {
    "llama.block_count": 2,
    "llama.context_length": 512,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 128,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10_000.0,
}
CONFIG: Mapping[str, object] = {
    "model_type": "llama",
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
}


@dataclass(slots=True)
class PaperModel:
    """A `Checkpoint` whose tensors are shapes; `values` holds those that are read."""

    format: FileFormat
    metadata: Mapping[str, object]
    architecture: str = "llama"
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    path: Path = Path("paper")
    weight_files: tuple[Path, ...] = ()
    chat_template: str | None = None
    folder_text: FolderText | None = None

    def add_tensor(self, name: str, *shape: int) -> None:
        self.tensors[name] = TensorInfo(name, shape, "F32", 4)

    def add_values(self, name: str, values: np.ndarray) -> None:
        self.add_tensor(name, *values.shape)
        self.values[name] = values

    def read_float32(self, name: str) -> np.ndarray:
        return self.values[name]

    def close(self) -> None:
        """Nothing is open."""


def paper_gguf(**changes: object) -> PaperModel:
    """A llama GGUF file; `changes` name keys without "llama.", dots written as two underscores, None removes one."""
    return _changed(FileFormat.GGUF, GGUF_METADATA, "llama.", changes)


def paper_config(**changes: object) -> PaperModel:
    """A llama folder; `changes` are to its config.json, None writes null."""
    return PaperModel(FileFormat.SAFETENSORS, {**CONFIG, **changes})


def _changed(
    file_format: FileFormat, metadata: Mapping[str, object], prefix: str, changes: dict[str, object]
) -> PaperModel:
    merged = dict(metadata)
    for name, value in changes.items():
        merged[prefix + name.replace("__", ".")] = value
    kept = {key: value for key, value in merged.items() if value is not None}
    model = PaperModel(file_format, kept)
    model.add_tensor("token_embd.weight", 300, 64)
    return model
