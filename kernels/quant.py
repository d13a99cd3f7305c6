"""The storage formats of weights: how many bytes hold how many values, and what those values are.

A weight is stored in blocks along its rows; each format has a fixed number of values and bytes per
block. The numbers come from the `gguf` package, which is kept beside the format's definition. Pure
functions on numpy arrays, safe on any thread. No torch, nothing of the engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import gguf
import numpy as np

CHUNK_VALUES = 1 << 18
"""Values dequantised at once: small enough for the cache, large enough to hide numpy's overhead."""

_NAMES = (
    "F32", "F16", "BF16",
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
    "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
    "IQ4_NL", "IQ4_XS", "MXFP4",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """A storage format: every `block_values` consecutive values of a row take `block_bytes`."""

    name: str
    block_values: int
    block_bytes: int

    def num_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a tensor; raises ValueError when its rows are no whole number of blocks."""
        if not shape or shape[-1] % self.block_values:
            raise ValueError(
                f"rows of shape {shape} are no whole number of {self.name} blocks, "
                f"which hold {self.block_values} values"
            )
        return math.prod(shape) // self.block_values * self.block_bytes


BLOCK_FORMATS: Mapping[str, BlockFormat] = MappingProxyType(
    {
        name: BlockFormat(name, *gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]])
        for name in _NAMES
    }
)
"""Every format that can be read, by its name in GGUF files."""


def block_format(storage: str) -> BlockFormat:
    """The format of that name; raises ValueError when it is none of BLOCK_FORMATS."""
    try:
        return BLOCK_FORMATS[storage]
    except KeyError:
        known = ", ".join(BLOCK_FORMATS)
        raise ValueError(f"{storage} is no storage format that can be read ({known})") from None


def dequantize(raw: np.ndarray, storage: str, shape: tuple[int, ...]) -> np.ndarray:
    """The values of `raw`, a new C-contiguous float32 array of `shape`.

    raw: uint8, contiguous, exactly the bytes of the tensor, row-major, little-endian. Scales that
    are not finite give values that are not finite. Peak memory is the result and one chunk.
    Raises ValueError for an unknown storage, a size that does not fit or rows of partial blocks.
    """
    form = block_format(storage)
    if raw.dtype != np.uint8 or raw.size != form.num_bytes(shape):
        raise ValueError(
            f"{storage} of shape {shape} takes {form.num_bytes(shape)} bytes of uint8, "
            f"got {raw.size} of {raw.dtype}"
        )
    raw = raw.reshape(-1)
    values = np.empty(math.prod(shape), dtype=np.float32)
    kind = gguf.GGMLQuantizationType[storage]
    step = CHUNK_VALUES // form.block_values  # blocks
    with np.errstate(
        all="ignore"
    ):  # random scales overflow or are NaN; that is the file's business
        for block in range(0, values.size // form.block_values, step):
            chunk = raw[block * form.block_bytes : (block + step) * form.block_bytes]
            start = block * form.block_values
            values[start : start + CHUNK_VALUES] = gguf.dequantize(chunk.reshape(1, -1), kind)[0]
    return values.reshape(shape)
