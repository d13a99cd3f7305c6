"""How torch's pool stores the keys and values of a head: as numbers, or as bytes with scales. Engine thread.

As bytes, a head of one position is `head_dim` of them, made even by a zero, then its scales, half precision: one for
each 32 dimensions (see `kv_layout.KvType`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernels.kv_layout import KV_GROUP, KvType

_DTYPES = {KvType.F16: torch.float16, KvType.F32: torch.float32, KvType.Q8_0: torch.int8}
_LARGEST_BYTE = 127
_SCALE_BYTES = 2


@dataclass(frozen=True, slots=True)
class KvStorage:
    """Heads of `head_dim` as `kv_type` stores them."""

    kv_type: KvType
    head_dim: int

    @classmethod
    def of(cls, kv_pool: Tensor, head_dim: int) -> KvStorage:
        """What a pool of that type of number holds."""
        kinds = {dtype: kind for kind, dtype in _DTYPES.items()}
        return cls(kinds[kv_pool.dtype], head_dim)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the pool's tensor."""
        return _DTYPES[self.kv_type]

    @property
    def is_bytes(self) -> bool:
        return self.kv_type is KvType.Q8_0

    @property
    def width(self) -> int:
        """Elements of the pool's tensor for a head of one position."""
        if not self.is_bytes:
            return self.head_dim
        return self._scales_at + _SCALE_BYTES * len(self.groups())

    @property
    def limit(self) -> float:
        """The largest number it can hold."""
        if self.is_bytes:
            return _LARGEST_BYTE * torch.finfo(torch.float16).max
        return torch.finfo(self.dtype).max

    @property
    def _scales_at(self) -> int:
        return self.head_dim + self.head_dim % _SCALE_BYTES

    def groups(self) -> list[slice]:
        """The dimensions that share a scale."""
        starts = range(0, self.head_dim, KV_GROUP)
        return [slice(start, min(start + KV_GROUP, self.head_dim)) for start in starts]

    def scales(self, stored: Tensor) -> Tensor:
        """The scales [..., groups] in what is stored as bytes, [..., width]; the same memory."""
        return stored.view(torch.float16)[..., self._scales_at // _SCALE_BYTES :]

    def encode(self, heads: Tensor, stored: Tensor) -> None:
        """Put finite float32 `heads` [..., head_dim], within `limit`, into `stored` [..., width]."""
        if not self.is_bytes:
            stored.copy_(heads)
            return
        scales = self.scales(stored)
        for index, group in enumerate(self.groups()):
            numbers = heads[..., group]
            scale = (numbers.abs().amax(-1) / _LARGEST_BYTE).half()
            inverse = scale.float().reciprocal_().nan_to_num_(posinf=0.0)
            codes = (numbers * inverse[..., None]).round_().clamp_(-_LARGEST_BYTE, _LARGEST_BYTE)
            stored[..., group] = codes.to(torch.int8)
            scales[..., index] = scale

    def is_finite(self, page: NDArray[np.uint8]) -> bool:
        """Whether no number in a page's bytes, and no scale of theirs, is infinite or no number. Any thread."""
        if not self.is_bytes:
            numbers = page.view(np.float16 if self.kv_type is KvType.F16 else np.float32)
        else:
            scales = page.reshape(-1, self.width)[:, self._scales_at :]
            numbers = np.ascontiguousarray(scales).view(np.float16)
        return bool(np.isfinite(numbers).all())
