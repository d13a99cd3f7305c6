"""How a page of the CPU back end's pool is laid out; to everybody else a page is opaque bytes of a known size.

A page holds PAGE_TOKENS positions of every layer: layer by layer, keys then values, head by head. Keys lie with the
positions side by side, [head_dim, PAGE_TOKENS], so that one load meets many positions; values lie position by
position, padded to 16. No native call, no tensor library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from kernels.api import AttentionShape, PagedAttention, Program, StoreKv

PAGE_TOKENS = 32
_ALIGNMENT = 64
_VALUE_WIDTH = 16


class KvType(Enum):
    """How keys and values are stored; the value is the bytes of one number."""

    F16 = 2
    F32 = 4


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
        stride = -(-shape.head_dim // _VALUE_WIDTH) * _VALUE_WIDTH
        values_at = at + _aligned(shape.kv_heads * shape.head_dim * PAGE_TOKENS * kv_type.value)
        layers[number] = KvLayer(at, values_at, shape.kv_heads, shape.head_dim, stride)
        at = values_at + _aligned(shape.kv_heads * stride * PAGE_TOKENS * kv_type.value)
    return PageLayout(max(at, _ALIGNMENT), kv_type, layers)


@dataclass(frozen=True, slots=True)
class KvPool:
    """Pages in memory, and what lies in them. The owner moves pages as opaque bytes."""

    layout: PageLayout
    pages: NDArray[np.uint8]
    """[pages, page_bytes], the first at a multiple of 64 bytes; only finite numbers are ever in them."""


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
