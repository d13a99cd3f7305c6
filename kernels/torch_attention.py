"""Attention over the paged pool: plans a step once, then computes it layer by layer. Engine thread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kernels.api import AttentionShape, PagedAttention, StepInputs
from kernels.attention_plan import PIECE_TOKENS, TILE_SIZE, Geometry, plan_attention
from kernels.torch_pool import Pool
from kernels.torch_step import Step, Workspace
from kernels.torch_wave import Batching, BoundWave, WaveBinder, WaveMemory, value_width
from kernels.torch_wave_ops import Part

_WAVE_BYTES = 6 << 20
"""Most bytes of scores, and of keys and values, in a wave: both stay in the last-level cache of a desktop machine."""
_DEVICE_WAVE_BYTES = 32 << 20
"""On a device, where it is launches that count."""
_DEVICE_BATCH = 32


def products_at_once(device: torch.device) -> int:
    """How many matrices every batch of products has; 0: any number, where a library treats them one by one.

    cuBLAS takes another kernel, with another order of summation, for another number of matrices.
    """
    return 0 if device.type == "cpu" else _DEVICE_BATCH


class AttentionKernel:
    """Attention of one shape, for every layer that has it."""

    def __init__(
        self,
        shape: AttentionShape,
        pool: Pool,
        workspace: Workspace,
        wave_bytes: int = _WAVE_BYTES,
    ) -> None:
        self._shape = shape
        self._pool = pool
        self._scratch = workspace.scratch
        self._device = workspace.device
        self._batching = Batching(products_at_once(self._device))
        if self._device.type != "cpu":
            wave_bytes = _DEVICE_WAVE_BYTES
        group = shape.heads // shape.kv_heads
        pair_bytes = 4 * shape.kv_heads * max(TILE_SIZE, group) * PIECE_TOKENS
        piece_bytes = 4 * 2 * PIECE_TOKENS * pool.width
        self._geometry = Geometry(
            group=group,
            page_tokens=pool.page_tokens,
            window=shape.window,
            max_pairs=max(1, wave_bytes // pair_bytes),
            max_pieces=max(1, wave_bytes // piece_bytes),
        )
        self._waves: tuple[BoundWave, ...] = ()

    def prepare(self, inputs: StepInputs, rows: int) -> None:
        """Plan a step; results are wanted for `rows` rows, padding included."""
        plan = plan_attention(inputs, self._geometry)
        pages = np.concatenate([wave.pages for wave in plan.waves]) * self._pool.num_layers
        self._page_index = self._tensor(pages + np.arange(self._pool.num_layers)[:, None]).unbind()
        places = np.zeros(rows, dtype=np.int64)
        places[: len(plan.place_of_row)] = plan.place_of_row
        self._place_of_row = self._tensor(places)
        self._row_of_place = self._tensor(plan.rows_of_tiles.reshape(-1))
        binder = self._bind_tiles(len(plan.rows_of_tiles))
        waves, first_page = [], 0
        for wave in plan.waves:
            waves.append(binder.bind(wave, first_page))
            first_page += len(wave.pages)
        self._waves = tuple(waves)

    def run(self, query: Tensor, out: Tensor, layer: int) -> None:
        """Shapes: `query`, `out` [rows, heads * head_dim]."""
        torch.index_select(query, 0, self._row_of_place, out=self._tile_rows)
        torch.mul(self._rows_by_head, self._shape.scale, out=self._query_places)
        index = self._page_index[layer]
        for wave in self._waves:
            wave_index = index[wave.first_page : wave.first_page + wave.num_pages]
            torch.index_select(self._pool.pages, 0, wave_index, out=wave.gathered)
            for action in wave.actions:
                action.run()
        self._rows_by_head.copy_(self._result_places)
        torch.index_select(self._tile_rows, 0, self._place_of_row, out=out)

    def _bind_tiles(self, num_tiles: int) -> WaveBinder:
        """Memory for queries and results: by row as the step has them, by key head as the products need them."""
        shape, group = self._shape, self._geometry.group
        tile_rows, size = self._geometry.tile_rows, self._geometry.tile_size
        tiles = (shape.kv_heads, num_tiles, size)
        room = self._batching.room_after(num_tiles)
        queries = self._scratch.take("tiles", shape.kv_heads, room, size, shape.head_dim)
        state = Part.take(self._scratch, "state", (*tiles, value_width(shape.head_dim)))
        by_head = (shape.kv_heads, num_tiles, tile_rows, group, shape.head_dim)
        used = tile_rows * group
        self._query_places = queries[:, :num_tiles, :used].view(by_head)
        self._result_places = state.mean[:, :, :used, : shape.head_dim].view(by_head)
        self._tile_rows = self._scratch.take(
            "tile_rows", num_tiles * tile_rows, shape.heads * shape.head_dim
        )
        by_row = (num_tiles, tile_rows, shape.kv_heads, group, shape.head_dim)
        self._rows_by_head = self._tile_rows.view(by_row).permute(2, 0, 1, 3, 4)
        memory = WaveMemory(self._pool, self._scratch, queries, state)
        return WaveBinder(memory, self._geometry, self._batching)

    def _tensor(self, values: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(values).to(self._device)


class AttentionOp:
    """One layer's attention."""

    def __init__(self, op: PagedAttention, kernel: AttentionKernel) -> None:
        self._op = op
        self._kernel = kernel

    def run(self, step: Step) -> None:
        self._kernel.run(step.view(self._op.query), step.view(self._op.out), self._op.shape.layer)
