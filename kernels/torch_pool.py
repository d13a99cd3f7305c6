"""Writing keys and values to the pool, and the pool seen as rows and as pages. Engine thread."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernels.api import StepInputs, StoreKv
from kernels.torch_step import Step, Workspace


class Pool:
    """A KV pool [pages, layers, 2, page_tokens, kv_heads, head_dim] and the step's places in it.

    `pages` is the same memory as [pages * layers, values of one layer's page].
    """

    def __init__(self, kv_pool: Tensor) -> None:
        num_pages, self.num_layers, _, self.page_tokens, self.kv_heads, self.head_dim = (
            kv_pool.shape
        )
        self.dtype = kv_pool.dtype
        self.width = self.kv_heads * self.head_dim
        self.pages = kv_pool.view(num_pages * self.num_layers, -1)
        self._rows = kv_pool.view(-1, self.width)
        self._limit = torch.finfo(self.dtype).max
        self._row_index: tuple[Tensor, ...] = ()
        """By layer: where the step's keys go, then where its values go."""

    def prepare(self, inputs: StepInputs) -> None:
        """Find the place of each of the step's rows."""
        page_tokens = self.page_tokens
        pages = [
            inputs.page_tables[sequence][position // page_tokens]
            for sequence, position in zip(inputs.sequences, inputs.positions, strict=True)
        ]
        offsets = np.array(inputs.positions, dtype=np.int64) % page_tokens
        halves = (np.array(pages) * self.num_layers + np.arange(self.num_layers)[:, None]) * 2
        keys = halves * page_tokens + offsets
        index = np.concatenate([keys, keys + page_tokens], axis=1)
        self._row_index = torch.from_numpy(index).to(self._rows.device).unbind()

    def store(self, rows: Tensor, stored: Tensor, layer: int) -> None:
        """Write the step's keys, then its values: float32 `rows` by way of `stored`, which has the pool's type.

        All that is ever in the pool is finite, so that a masked value times zero is zero.
        """
        rows.clamp_(-self._limit, self._limit).nan_to_num_(nan=0.0)
        if stored is not rows:
            stored.copy_(rows)
        self._rows.index_copy_(0, self._row_index[layer], stored)


class StoreKvOp:
    """Puts the step's keys and values of one layer into the pool."""

    def __init__(self, op: StoreKv, pool: Pool, workspace: Workspace) -> None:
        self._op = op
        self._pool = pool
        self._scratch = workspace.scratch
        self._key = workspace.key("store_kv", op.key, op.value)

    def run(self, step: Step) -> None:
        key, value, key_rows, value_rows, rows, stored = step.bound(self._key, self._bind)
        key_rows.copy_(key)
        value_rows.copy_(value)
        self._pool.store(rows, stored, self._op.shape.layer)

    def _bind(self, step: Step) -> tuple[Tensor, ...]:
        count, pool = step.num_rows, self._pool
        key, value = step.view(self._op.key)[:count], step.view(self._op.value)[:count]
        rows = self._scratch.take("kv_rows", 2 * count, pool.width)
        stored = rows
        if pool.dtype is not torch.float32:
            stored = self._scratch.take("kv_stored", *rows.shape, dtype=pool.dtype)
        return key, value, rows[:count], rows[count:], rows, stored
