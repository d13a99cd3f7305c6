"""The memory of a compiled program, and one step's view of it.

Rows come in tiles of `TILE_ROWS`: a step's rows are padded to whole tiles, and every kernel that is not exact by nature
runs on tiles of one shape, so that a row's arithmetic never depends on how many rows stand beside it. Engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.api import Buffer, Extent, StepInputs
from kernels.lowering import LoweredProgram, Placement

TILE_ROWS = 16


def padded(count: int) -> int:
    """`count` rows in whole tiles, at least one."""
    return max(1, -(-count // TILE_ROWS)) * TILE_ROWS


class Scratch:
    """Memory by name that grows to the largest size asked for and is kept. Contents are undefined."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: dict[tuple[str, torch.dtype], Tensor] = {}

    def take(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """A contiguous tensor of `shape`; the next `take` of the same name and type gives the same memory."""
        size = 1
        for length in shape:
            size *= length
        memory = self._memory.get((name, dtype))
        if memory is None or memory.numel() < size:
            memory = torch.zeros(size, dtype=dtype, device=self._device)
            self._memory[(name, dtype)] = memory
        return memory[:size].view(shape)


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest step a program is compiled for."""

    max_rows: int
    max_outputs: int
    max_positions: int
    """Positions are below this."""


class Workspace:
    """The float32 memory of all buffers, laid out as `lower` planned it."""

    def __init__(self, program: LoweredProgram, limits: Limits, device: torch.device) -> None:
        most = {Extent.TOKENS: padded(limits.max_rows), Extent.OUTPUTS: padded(limits.max_outputs)}
        self.device = device
        self.scratch = Scratch(device)
        self.slots = [
            torch.zeros(most[slot.extent] * slot.width, device=device) for slot in program.slots
        ]
        self.extents = [slot.extent for slot in program.slots]
        distinct = list(dict.fromkeys(program.placements))
        self.placements = distinct
        """Layers reuse the same memory, so there are few distinct placements."""
        self.placement_of = [distinct.index(placement) for placement in program.placements]
        """By `Buffer.index`: which of `placements`."""

    def key(self, kind: str, *buffers: Buffer) -> tuple[Hashable, ...]:
        """For `Step.bound`: alike for ops of one kind over the same memory."""
        return (kind, *(self.placement_of[buffer.index] for buffer in buffers))

    def placement(self, buffer: Buffer) -> Placement:
        return self.placements[self.placement_of[buffer.index]]

    @property
    def num_bytes(self) -> int:
        return sum(slot.nbytes for slot in self.slots)


class Step:
    """One step's rows, padded, and views of the workspace cut to them; made anew for each step."""

    def __init__(self, workspace: Workspace, inputs: StepInputs) -> None:
        self.num_rows = len(inputs.token_ids)
        self.rows = padded(self.num_rows)
        num_outputs = padded(len(inputs.outputs))
        self.token_ids = _padded_tensor(inputs.token_ids, self.rows, workspace.device)
        self.positions = _padded_tensor(inputs.positions, self.rows, workspace.device)
        self.output_rows = _padded_tensor(inputs.outputs, num_outputs, workspace.device)
        self._rows_of = {Extent.TOKENS: self.rows, Extent.OUTPUTS: num_outputs}
        self._workspace = workspace
        self._views: list[Tensor | None] = [None] * len(workspace.placements)
        self._tiles: list[tuple[Tensor, ...] | None] = [None] * len(workspace.placements)
        self._bound: dict[Hashable, tuple[Tensor, ...]] = {}

    def view(self, buffer: Buffer) -> Tensor:
        """All rows of a buffer, padding included: [rows, width]."""
        index = self._workspace.placement_of[buffer.index]
        view = self._views[index]
        if view is None:
            view = self._views[index] = self._cut(self._workspace.placements[index])
        return view

    def tiles(self, buffer: Buffer) -> tuple[Tensor, ...]:
        """The same as tiles of [TILE_ROWS, width]."""
        index = self._workspace.placement_of[buffer.index]
        tiles = self._tiles[index]
        if tiles is None:
            tiles = self._tiles[index] = torch.split(self.view(buffer), TILE_ROWS)
        return tiles

    def bound(
        self, key: Hashable, bind: Callable[[Step], tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """What `bind` makes of this step, made once for all ops that have the same `key`.

        Layers use the same memory, so their ops share views; making them anew took half of the time of a small op.
        """
        views = self._bound.get(key)
        if views is None:
            views = self._bound[key] = bind(self)
        return views

    def _cut(self, placement: Placement) -> Tensor:
        rows = self._rows_of[self._workspace.extents[placement.slot]]
        whole = self._workspace.slots[placement.slot][: rows * placement.pitch]
        stop = placement.start + placement.width
        return whole.view(rows, placement.pitch)[:, placement.start : stop]


def _padded_tensor(values: list[int], length: int, device: torch.device) -> Tensor:
    """int64, filled up with 0, which is a valid token, position and row."""
    return torch.tensor(values + [0] * (length - len(values)), device=device)
