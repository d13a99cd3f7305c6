"""How a page of the CPU back end's pool is laid out; to everybody else a page is opaque bytes of a known size.

A page holds PAGE_TOKENS positions of every layer: layer by layer, keys then values, head by head. Keys lie with the
positions side by side, [head_dim, PAGE_TOKENS], so that one load meets many positions; values lie position by
position, padded to 16. As bytes, keys lie by fours, [head_dim / 4, PAGE_TOKENS, 4], and behind each head's bytes lie
their scales, half precision, [groups of 32 dimensions, PAGE_TOKENS]; kernels/cpu/kv_tiles.h says the same. No native
call, no tensor library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from kernels.api import AttentionShape, PagedAttention, Program, StoreKv

PAGE_TOKENS = 32
_ALIGNMENT = 64
_VALUE_WIDTH = 16
_KEY_QUAD = 4
KV_GROUP = 32
"""Dimensions of a head that share a scale where keys and values are bytes."""
_SCALE_BYTES = 2


class KvType(Enum):
    """How keys and values are stored."""

    F16 = "f16"
    F32 = "f32"
    Q8_0 = "q8_0"
    """Bytes and a scale for each `KV_GROUP` dimensions of a head: scale = largest magnitude / 127, rounded to half
    precision; a byte is the number times 1 / scale, rounded to nearest, ties to even."""


_NUMBER_BYTES = {KvType.F16: 2, KvType.F32: 4, KvType.Q8_0: 1}


@dataclass(frozen=True, slots=True)
class _Tile:
    """One head's keys or values in a page: so many bytes of numbers, then of scales."""

    number_bytes: int
    scale_bytes: int

    @property
    def num_bytes(self) -> int:
        return self.number_bytes + self.scale_bytes


def _tile(dimensions: int, kv_type: KvType) -> _Tile:
    groups = -(-dimensions // KV_GROUP) if kv_type is KvType.Q8_0 else 0
    numbers = dimensions * PAGE_TOKENS * _NUMBER_BYTES[kv_type]
    return _Tile(numbers, groups * PAGE_TOKENS * _SCALE_BYTES)


def _key_tile(head_dim: int, kv_type: KvType) -> _Tile:
    is_bytes = kv_type is KvType.Q8_0
    return _tile(_padded(head_dim, _KEY_QUAD) if is_bytes else head_dim, kv_type)


def _value_tile(head_dim: int, kv_type: KvType) -> _Tile:
    return _tile(_padded(head_dim, _VALUE_WIDTH), kv_type)


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


@dataclass(frozen=True, slots=True)
class KvLayer:
    """Where one layer's keys and values begin in a page, in bytes, and the shape of their heads."""

    key_offset: int
    value_offset: int
    kv_heads: int
    head_dim: int
    value_stride: int
    """Numbers from one position's value to the next."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """A page: its bytes and its layers by their number in the model."""

    page_bytes: int
    kv_type: KvType
    layers: Mapping[int, KvLayer]

    def is_finite(self, page: NDArray[np.uint8]) -> bool:
        """Whether no number in a page's bytes, and no scale of theirs, is infinite or no number. Any thread."""
        if self.kv_type is not KvType.Q8_0:
            kind = np.float32 if self.kv_type is KvType.F32 else np.float16
            return bool(np.isfinite(page.view(kind)).all())
        return all(
            bool(np.isfinite(page[start:stop].view(np.float16)).all())
            for start, stop in self._scale_spans()
        )

    def _scale_spans(self) -> Iterator[tuple[int, int]]:
        for kv in self.layers.values():
            for first, tile in (
                (kv.key_offset, _key_tile(kv.head_dim, self.kv_type)),
                (kv.value_offset, _value_tile(kv.head_dim, self.kv_type)),
            ):
                for head in range(kv.kv_heads):
                    start = first + head * tile.num_bytes
                    yield start + tile.number_bytes, start + tile.num_bytes


def page_layout(program: Program, kv_type: KvType = KvType.F16) -> PageLayout:
    """The layout for all layers of a program. ValueError when two ops disagree on a layer's heads."""
    shapes: dict[int, AttentionShape] = {}
    for op in program.ops:
        if isinstance(op, StoreKv | PagedAttention):
            known = shapes.setdefault(op.shape.layer, op.shape)
            if (known.kv_heads, known.head_dim) != (op.shape.kv_heads, op.shape.head_dim):
                raise ValueError(
                    f"layer {op.shape.layer} stores {known.kv_heads} heads of {known.head_dim}, "
                    f"but attention reads {op.shape.kv_heads} of {op.shape.head_dim}"
                )
    layers: dict[int, KvLayer] = {}
    at = 0
    for number, shape in sorted(shapes.items()):
        key, value = _key_tile(shape.head_dim, kv_type), _value_tile(shape.head_dim, kv_type)
        values_at = at + _aligned(shape.kv_heads * key.num_bytes)
        stride = _padded(shape.head_dim, _VALUE_WIDTH)
        layers[number] = KvLayer(at, values_at, shape.kv_heads, shape.head_dim, stride)
        at = values_at + _aligned(shape.kv_heads * value.num_bytes)
    return PageLayout(max(at, _ALIGNMENT), kv_type, layers)


@dataclass(frozen=True, slots=True)
class KvPool:
    """Pages in memory, and what lies in them. The owner moves pages as opaque bytes."""

    layout: PageLayout
    pages: NDArray[np.uint8]
    """[pages, page_bytes], the first at a multiple of 64 bytes; only finite numbers are ever in them."""


def _aligned(size: int) -> int:
    return _padded(size, _ALIGNMENT)
