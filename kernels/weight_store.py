"""Where a back end gets a model's weights from: tensors as their files hold them, by name.

No tensor library; numpy only for the few small tensors that are wanted as floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.quant import dequantize

FLOAT_STORAGES = frozenset({"F32", "F16", "BF16"})
"""Storages that are multiplied as floats."""


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """A tensor as its file holds it."""

    storage: str
    """A name of `kernels.quant.BLOCK_FORMATS`."""
    data: memoryview | NDArray[np.uint8]
    """Its bytes, contiguous, row-major, little-endian."""
    shape: tuple[int, ...]

    def values(self) -> NDArray[np.float32]:
        """The tensor as floats; for small ones. ValueError when bytes and shape do not fit."""
        return dequantize(np.frombuffer(self.data, np.uint8), self.storage, self.shape)


class WeightStore(Protocol):
    """Weights by the names that a program uses; KeyError for a name that is not there."""

    def storage(self, name: str) -> str:
        """How the tensor is stored, known without reading it."""
        ...

    def stored(self, name: str) -> StoredWeight:
        """The tensor, valid until the next call."""
        ...
