"""What every model file looks like from inside the engine, whatever its format.

The types that `engine.formats.checkpoint` hands out; they stand apart so that the two readers may
use them. A `Checkpoint` belongs to the thread that opened it. No torch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np

from engine.errors import CorruptModel, NotEnoughMemory
from engine.formats.mapped_file import DAMAGED, MappedFile, shorten
from kernels.quant import dequantize

_ARCHITECTURE = re.compile(r"[A-Za-z0-9._-]{1,64}")


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
    pooling: Mapping[str, object] = field(default_factory=dict)
    """1_Pooling/config.json, of a folder that sentence-transformers wrote."""
    modules: tuple[str, ...] = ()
    """What modules.json of such a folder puts one after another: "Transformer", "Pooling" ..."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor's bytes are."""

    file: MappedFile
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """An open model. Every size in its files has been checked against them; metadata values not.

    `metadata` is a GGUF file's keys and values, or a folder's config.json. Arrays of a GGUF file
    stay compact: `array.array` of numbers, `StringArray` of strings (both index and iterate as
    Python values), a tuple of such where they are nested.
    """

    path: Path
    """What was opened: the first file of a split GGUF model, or the folder."""
    format: FileFormat
    architecture: str
    """general.architecture of a GGUF file, model_type of a config.json: a plain short name."""
    metadata: Mapping[str, object]
    tensors: Mapping[str, TensorInfo]
    """Under the file's own names."""
    places: Mapping[str, Place]
    """For the same names."""
    files: tuple[MappedFile, ...]
    """The files of weights."""
    chat_template: str | None
    """The default template's text, not yet parsed."""
    folder_text: FolderText | None = None
    """Set for a Hugging Face folder; a GGUF file has tokenizer.ggml.* in `metadata` instead."""

    def __post_init__(self) -> None:
        if not _ARCHITECTURE.fullmatch(self.architecture):
            raise CorruptModel(
                f"{self.path.name}: the architecture is {shorten(self.architecture)}, a name of up to "
                f"64 letters, digits and . _ - was expected; {DAMAGED}"
            )

    def read_float32(self, name: str) -> np.ndarray:
        """The tensor's values, dequantised: C-contiguous float32 of its shape, the caller's own.

        Called on the engine thread only. Raises KeyError for a name that is not in `tensors`,
        CorruptModel when the file has shrunk since it was opened, NotEnoughMemory.
        """
        info, place = self.tensors[name], self.places[name]
        raw = place.file.view(place.offset, info.num_bytes)
        try:
            return dequantize(raw, info.storage, info.shape)
        except MemoryError as error:
            raise NotEnoughMemory(
                f"tensor {shorten(name)} needs {4 * math.prod(info.shape)} bytes of memory, "
                "they are not free; close other programs or choose a smaller model"
            ) from error

    def close(self) -> None:
        """Let go of the files; arrays that were read stay valid. Idempotent."""
        for file in self.files:
            file.close()
