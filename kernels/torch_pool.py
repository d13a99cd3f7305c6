"""Writing keys and values to the pool, and the pool seen as rows and as pages. Engine thread."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernels.api import StepInputs, StoreKv
from kernels.torch_kv import KvStorage
from kernels.torch_step import Step, Workspace


class Pool:
    """A KV pool [pages, layers, 2, page_tokens, kv_heads, storage.width] and the step's places in it.

    `pages` is the same memory as [pages * layers, elements of one layer's page].
    """

    def __init__(self, kv_pool: Tensor, storage: KvStorage) -> None:
        num_pages, self.num_layers, _, self.page_tokens, self.kv_heads, width = kv_pool.shape
        self.storage = storage
        self.width = self.kv_heads * storage.head_dim
        """Numbers of a position's keys, and of its values."""
        self.pages = kv_pool.view(num_pages * self.num_layers, -1)
        self._rows = kv_pool.view(-1, self.kv_heads * width)
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
        """Write the step's keys, then its values: float32 `rows` by way of `stored`, which is as the pool has them.

        All that is ever in the pool is finite, so that a masked value times zero is zero.
        """
        limit = self.storage.limit
        rows.clamp_(-limit, limit).nan_to_num_(nan=0.0)
        if stored is not rows:
            heads = (len(rows), self.kv_heads, -1)
            self.storage.encode(rows.view(heads), stored.view(heads))
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
        if pool.storage.dtype is not torch.float32:
            shape = (2 * count, pool.kv_heads * pool.storage.width)
            stored = self._scratch.take("kv_stored", *shape, dtype=pool.storage.dtype)
        return key, value, rows[:count], rows[count:], rows, stored
