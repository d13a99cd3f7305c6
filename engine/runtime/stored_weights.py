"""A model's weights for the native kernels: as the file stores them, nothing dequantised. Engine thread. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from engine.formats.base import Checkpoint
from engine.models.weight_map import WeightSource
from kernels.weight_store import StoredWeight


class StoredWeights:
    """A `kernels.weight_store.WeightStore` over an open checkpoint.

    `on_progress` hears after each tensor what share of all bytes has been read, and may raise to end the loading.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        sources: Mapping[str, WeightSource],
        on_progress: Callable[[float], object],
    ) -> None:
        self._checkpoint = checkpoint
        self._sources = sources
        self._on_progress = on_progress
        tensors = checkpoint.tensors
        self._total_bytes = sum(tensors[source.tensor].num_bytes for source in sources.values())
        self._read_bytes = 0

    def storage(self, name: str) -> str:
        """How the weight is stored. KeyError for an unknown name."""
        return self._checkpoint.tensors[self._sources[name].tensor].storage

    def stored(self, name: str) -> StoredWeight:
        """The weight's bytes, a view of the file unless rows must change places.

        Raises KeyError for an unknown name, CorruptModel when the file has shrunk, and what `on_progress` raises.
        """
        source = self._sources[name]
        info, place = (
            self._checkpoint.tensors[source.tensor],
            self._checkpoint.places[source.tensor],
        )
        raw = np.frombuffer(place.file.view(place.offset, info.num_bytes), np.uint8)
        if source.paired_head_dim:
            raw = unpair_stored_rows(raw, info.shape, source.paired_head_dim)
        self._read_bytes += info.num_bytes
        self._on_progress(min(1.0, self._read_bytes / self._total_bytes))
        return StoredWeight(info.storage, raw, info.shape)


def unpair_stored_rows(
    raw: NDArray[np.uint8], shape: tuple[int, ...], head_dim: int
) -> NDArray[np.uint8]:
    """The rows of each head from the order 0, h, 1, h + 1, ... to 0, 1, 2, ..., where h = head_dim / 2.

    Rows are whole blocks of their storage, so they move as bytes.
    """
    pairs = raw.reshape(shape[0] // head_dim, head_dim // 2, 2, -1)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(-1)
