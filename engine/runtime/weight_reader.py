"""Reads a model's weights for the back end, one at a time: nothing is held twice. Engine thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from engine.formats.base import Checkpoint
from engine.models.weight_map import WeightSource


class WeightReader(Mapping[str, torch.Tensor]):
    """The weights by canonical name, each read and dequantised to float32 whenever it is asked for.

    `on_progress` hears after each tensor what share of all bytes has been read, and may raise to end the loading.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        sources: Mapping[str, WeightSource],
        device: torch.device,
        on_progress: Callable[[float], object],
    ) -> None:
        self._checkpoint = checkpoint
        self._sources = sources
        self._device = device
        self._on_progress = on_progress
        self._total_bytes = sum(self._num_bytes(name) for name in sources)
        self._read_bytes = 0

    def __getitem__(self, name: str) -> torch.Tensor:
        """Raises KeyError for an unknown name, what `Checkpoint.read_float32` and `on_progress` raise."""
        source = self._sources[name]
        values = self._checkpoint.read_float32(source.tensor)
        if source.paired_head_dim:
            values = unpair_rotary_rows(values, source.paired_head_dim)
        tensor = torch.from_numpy(values).to(self._device)
        self._read_bytes += self._num_bytes(name)
        self._on_progress(min(1.0, self._read_bytes / self._total_bytes))
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def _num_bytes(self, name: str) -> int:
        return self._checkpoint.tensors[self._sources[name].tensor].num_bytes


def unpair_rotary_rows(values: np.ndarray, head_dim: int) -> np.ndarray:
    """The rows (or biases) of each head from the order 0, h, 1, h + 1, ... to 0, 1, 2, ..., where h = head_dim / 2."""
    pairs = values.reshape(-1, head_dim // 2, 2, *values.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(values.shape)
