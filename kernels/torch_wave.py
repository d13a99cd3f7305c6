"""Gives the waves of an attention plan their memory, once a step; every layer of the step then runs the same actions.

Each pair of a tile and a piece goes through products of one shape, [16, head_dim] x [head_dim, 256] and [16, 256] x
[256, head_dim], and one softmax over 256 positions. Batches of matrices that do not lie one after another take twice
as long (torch 2.13 with MKL), hence two layouts: key heads first in shared waves, pairs first in the others. Engine
thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernels.attention_plan import (
    PIECE_TOKENS,
    TILE_SIZE,
    Geometry,
    PairMask,
    PieceMask,
    Segment,
    Wave,
)
from kernels.torch_pool import Pool
from kernels.torch_step import Scratch
from kernels.torch_wave_ops import (
    Action,
    Begin,
    Copy,
    Fill,
    Gather,
    Join,
    Keep,
    Part,
    Product,
    Scale,
    Softmax,
)

_HIDDEN = np.float32(-1e30)
"""The score of a position that must not be seen: beside any visible one its weight underflows to 0."""

_BY_HEAD = (2, 0, 4, 1, 3, 5)
"""From [pieces, pages, 2, page_tokens, kv_heads, numbers] to [2, pieces, kv_heads, pages, page_tokens, numbers]."""


def value_width(head_dim: int) -> int:
    """Columns of the value matrices: with 10 of them, a row's bits were found to depend on its place in the tile."""
    return -(-head_dim // TILE_SIZE) * TILE_SIZE


@dataclass(frozen=True, slots=True)
class BoundWave:
    """The pages [first_page, first_page + num_pages) of the step's list go to `gathered`; the rest are `actions`."""

    first_page: int
    num_pages: int
    gathered: Tensor
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Batching:
    """How products of many small matrices are cut: into batches of exactly `size`, or not at all where it is 0.

    Where it is not, memory goes on behind the last matrix, and what is computed there means nothing to anybody.
    """

    size: int

    def padded(self, count: int) -> int:
        """`count` in whole batches."""
        return -(-count // self.size) * self.size if self.size else count

    def room_after(self, count: int) -> int:
        """Room for batches that begin anywhere among `count` matrices."""
        return count + max(self.size - 1, 0)

    def starts(self, count: int) -> range:
        """Where the batches of `count` matrices begin."""
        return range(0, count, self.size or count)

    def length(self, count: int) -> int:
        """Matrices in each of these batches."""
        return self.size or count


@dataclass(frozen=True, slots=True)
class WaveMemory:
    """What the waves of one step work on."""

    pool: Pool
    scratch: Scratch
    tiles: Tensor
    """[kv_heads, tiles and room behind them, tile_size, head_dim]: the step's queries, scaled."""
    state: Part


class WaveBinder:
    """Binds the waves of one step."""

    def __init__(self, memory: WaveMemory, geometry: Geometry, batching: Batching) -> None:
        self._pool = memory.pool
        self._scratch = memory.scratch
        self._tiles = memory.tiles
        self._state = memory.state
        self._geometry = geometry
        self._batching = batching

    def bind(self, wave: Wave, first_page: int) -> BoundWave:
        """Memory and actions of one wave; waves share the memory, as they run one after another."""
        kv_heads, _, size, head_dim = self._tiles.shape
        num_pairs, num_pieces = len(wave.pair_tiles), len(wave.pages) // self._geometry.piece_pages
        if wave.shared:
            room = self._batching.room_after(num_pairs)
            lead = (kv_heads, room)
        else:
            room = num_pieces = -(-self._batching.padded(num_pairs * kv_heads) // kv_heads)
            lead = (room, kv_heads)
        scores = self._scratch.take("scores", *lead, size, PIECE_TOKENS)
        weights = self._scratch.take("weights", *lead, size, PIECE_TOKENS)
        part = Part.take(self._scratch, "part", (*lead, size, value_width(head_dim)))
        gathered, keys, values, convert = self._bind_pieces(len(wave.pages), num_pieces)
        actions: list[Action] = []
        if wave.piece_mask is not None:
            actions.append(self._hide_unwritten(wave.piece_mask, gathered))
        actions += convert
        if wave.shared:
            actions += self._shared_products(wave, self._tiles, keys, scores)
        else:
            queries = self._scratch.take("queries", *lead, size, head_dim)
            actions.append(self._gather_queries(wave, queries[:num_pairs]))
            actions += self._pairwise(num_pairs, queries, keys, scores)
        if wave.pair_mask is not None:
            target = scores if wave.shared else scores.transpose(0, 1)
            actions += self._hide_unseen(wave.pair_mask, target)
        actions.append(Softmax(scores, weights, part))
        if wave.shared:
            actions += self._shared_products(wave, weights, values, part.mean)
        else:
            actions += self._pairwise(num_pairs, weights, values, part.mean)
            part = part.transposed()
        actions += [self._join(segment, part) for segment in wave.segments]
        return BoundWave(first_page, len(wave.pages), gathered, tuple(actions))

    def _bind_pieces(
        self, num_pages: int, room: int
    ) -> tuple[Tensor, Tensor, Tensor, list[Action]]:
        """Pages as the pool has them; their keys [room, kv_heads, head_dim, 256], values [.., 256, value_width]."""
        pool, storage, count = self._pool, self._pool.storage, self._geometry.piece_pages
        pieces, head_dim = num_pages // count, storage.head_dim
        gathered = self._scratch.take(
            "gathered", num_pages, pool.pages.shape[1], dtype=storage.dtype
        )
        by_page = gathered.view(pieces, count, 2, pool.page_tokens, pool.kv_heads, storage.width)
        width = value_width(head_dim)
        kv = self._scratch.take("kv", 2, room, pool.kv_heads, count, pool.page_tokens, width)
        keys, values = kv.view(2, room, pool.kv_heads, PIECE_TOKENS, width).unbind()
        numbers = kv[:, :pieces, ..., :head_dim]
        convert: list[Action] = [Copy(by_page[..., :head_dim].permute(_BY_HEAD), numbers)]
        if storage.is_bytes:
            stored = storage.scales(by_page).permute(_BY_HEAD)
            scales = self._scratch.take("scales", *stored.shape)
            convert.append(Copy(stored, scales))
            for index, group in enumerate(storage.groups()):
                convert.append(Scale(numbers[..., group], scales[..., index : index + 1]))
        return gathered, keys[..., :head_dim].transpose(-1, -2), values, convert

    def _hide_unwritten(self, mask: PieceMask, gathered: Tensor) -> Keep:
        """Zero for the values (scores hide the keys) that lie beyond what was written."""
        count, page_tokens = self._geometry.piece_pages, self._geometry.page_tokens
        bits = torch.int32 if gathered.element_size() == 4 else torch.int16
        pages = gathered[mask.start * count : mask.stop * count]
        values = pages.view(bits).view(mask.stop - mask.start, count, 2, page_tokens, -1)[:, :, 1]
        written = np.arange(PIECE_TOKENS) < mask.lengths[:, None]
        keep = torch.from_numpy(-written.astype(np.int16)).to(values.device, bits)
        return Keep(values, keep.view(-1, count, page_tokens, 1))

    def _hide_unseen(self, mask: PairMask, scores: Tensor) -> tuple[Keep, Fill]:
        """A very low score where a query must not see a position; `scores` [kv_heads, pairs, tile_size, 256]."""
        queries = np.repeat(mask.query_positions, self._geometry.group, axis=1)
        padding = self._geometry.tile_size - queries.shape[1]
        queries = np.pad(queries, ((0, 0), (0, padding)), mode="edge")[:, :, None]
        positions = (mask.piece_starts[:, None] + np.arange(PIECE_TOKENS))[:, None]
        seen = positions <= queries
        if self._geometry.window:
            seen &= positions > queries - self._geometry.window
        keep = torch.from_numpy(-seen.astype(np.int32)).to(scores.device)
        fill = torch.from_numpy(np.where(seen, 0, _HIDDEN.view(np.int32))).to(keep)
        target = scores[:, mask.start : mask.stop].view(torch.int32)
        return Keep(target, keep), Fill(target, fill)

    def _gather_queries(self, wave: Wave, queries: Tensor) -> Gather:
        """The queries of each pair's tile; `queries` has pairs first, the tiles have key heads first."""
        kv_heads, room = self._tiles.shape[:2]
        index = wave.pair_tiles[:, None] + np.arange(kv_heads) * room
        return Gather(
            self._tiles.flatten(0, 1).flatten(1),
            torch.from_numpy(index.reshape(-1)).to(queries.device),
            queries.flatten(0, 1).flatten(1),
        )

    def _join(self, segment: Segment, part: Part) -> Action:
        state = self._state.cut(segment.first_tile, segment.num_pairs)
        part = part.cut(segment.first_pair, segment.num_pairs)
        if segment.is_first:
            return Begin(state, part)
        top = self._scratch.take("join_top", *part.top.shape)
        return Join(state, part, top, self._scratch.take("join_factors", 2, *part.top.shape))

    def _pairwise(self, num_pairs: int, a: Tensor, b: Tensor, out: Tensor) -> Iterator[Product]:
        """Batches over pairs and key heads."""
        a, b, out = a.flatten(0, 1), b.flatten(0, 1), out.flatten(0, 1)
        count = num_pairs * len(self._tiles)
        length = self._batching.length(count)
        for start in self._batching.starts(count):
            rows = slice(start, start + length)
            yield Product(a[rows], b[rows], out[rows])

    def _shared_products(
        self, wave: Wave, a: Tensor, pieces: Tensor, out: Tensor
    ) -> Iterator[Product]:
        """For each piece and key head batches over the tiles that read it; `a` is the tiles, or numbered by pair.

        The last batch of a segment may run on into the next one, whose own products come later.
        """
        for index, segment in enumerate(wave.segments):
            first = segment.first_tile if a is self._tiles else segment.first_pair
            length = self._batching.length(segment.num_pairs)
            for head, matrix in enumerate(pieces[index]):
                batch = matrix.expand(length, -1, -1)
                for start in self._batching.starts(segment.num_pairs):
                    rows = slice(first + start, first + start + length)
                    results = slice(segment.first_pair + start, segment.first_pair + start + length)
                    yield Product(a[head, rows], batch, out[head, results])
