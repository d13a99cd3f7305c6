"""The memory behind page ids. Engine thread.

One tensor holds the whole pool, page by page: [num_pages, layers, 2, page_tokens, kv_heads, head_dim], float16 or
float32. A page is therefore one stretch of `bytes_per_page` bytes that holds `page_tokens` positions of every layer,
keys before values:

    byte = ((((page * layers + layer) * 2 + kind) * page_tokens + offset) * kv_heads + head) * head_dim * size + ...

with kind 0 for keys (after rotation) and 1 for values. All pages [0, num_pages) are for use. A page may be copied as
bytes, to another place in the pool or out of it and back. The pool starts as zeros and only finite numbers are written.
"""

from __future__ import annotations

import numpy as np
import torch

from engine.api import KvType
from engine.core.config import PAGE_TOKENS
from engine.models.spec import ModelSpec

_NUMPY_TYPES = {KvType.F16: np.float16, KvType.F32: np.float32}


def bytes_per_page(spec: ModelSpec, kv_type: KvType) -> int:
    """Bytes of one page: every layer's keys and values of `PAGE_TOKENS` positions."""
    values = spec.layers * 2 * PAGE_TOKENS * spec.kv_heads * spec.head_dim
    return values * np.dtype(_NUMPY_TYPES[kv_type]).itemsize


def allocate_pool(
    spec: ModelSpec, num_pages: int, kv_type: KvType, device: torch.device
) -> torch.Tensor:
    """A zeroed pool. On the CPU the system hands out its memory as pages are first written.

    Raises MemoryError or RuntimeError when there is not enough.
    """
    shape = (num_pages, spec.layers, 2, PAGE_TOKENS, spec.kv_heads, spec.head_dim)
    zeros = torch.from_numpy(np.zeros(shape if device.type == "cpu" else 0, _NUMPY_TYPES[kv_type]))
    if device.type == "cpu":
        return zeros
    return torch.zeros(shape, dtype=zeros.dtype, device=device)
