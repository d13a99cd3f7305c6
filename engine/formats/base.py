"""What every model file looks like from inside the engine, whatever its format.

The types that `engine.formats.checkpoint` hands out; they stand apart so that the two readers may
use them. Immutable but for `Checkpoint`, which belongs to the thread that opened it. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

import numpy as np


class FileFormat(Enum):
    """How a model lies on disk."""

    GGUF = "gguf"
    SAFETENSORS = "safetensors"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file. `shape` is row-major, [out, in] for a linear layer."""

    name: str
    shape: tuple[int, ...]
    storage: str
    """A name of `kernels.quant.BLOCK_FORMATS`: "F32", "Q4_1", "BF16" ..."""
    num_bytes: int


@dataclass(frozen=True, slots=True)
class FolderText:
    """What a Hugging Face folder says about its text, beside the chat template.

    The mappings are the parsed JSON files, empty where the file is absent; their values are
    unchecked.
    """

    tokenizer_json: Path | None
    tokenizer_config: Mapping[str, object]
    special_tokens: Mapping[str, object]
    """special_tokens_map.json"""
    generation_config: Mapping[str, object]
    """generation_config.json; `eos_token_id` is an int or a list of them."""


class Checkpoint(Protocol):
    """An open model. Every size in the file has been checked against it; values of metadata not.

    `metadata` is a GGUF file's keys and values, or a folder's config.json. Arrays of a GGUF file
    are read-only in meaning: `array.array` of numbers, `StringArray` of strings (both iterate and
    index as Python values), a tuple of such for nested ones.
    """

    path: Path
    """What was opened: the first file of a split GGUF model, or the folder."""
    format: FileFormat
    architecture: str
    """general.architecture of a GGUF file, model_type of a config.json."""
    metadata: Mapping[str, object]
    tensors: Mapping[str, TensorInfo]
    """Under the file's own names."""
    weight_files: tuple[Path, ...]
    chat_template: str | None
    """The default template's text, not yet parsed."""
    folder_text: FolderText | None
    """Set for a Hugging Face folder; a GGUF file has tokenizer.ggml.* in `metadata` instead."""

    def read_float32(self, name: str) -> np.ndarray:
        """The tensor's values, dequantised: C-contiguous float32 of its shape, the caller's own.

        Called on the engine thread only. Raises KeyError for a name that is not in `tensors`,
        CorruptModel when the file has shrunk since, NotEnoughMemory.
        """

    def close(self) -> None:
        """Let go of the files; arrays that were read stay valid. Idempotent."""
