"""From a recorded program to what a back end executes: merged linear layers, and a place in memory for every buffer.

Linear layers that read the same rows become one, so that their weights are one matrix; buffers that are never alive at
the same time share memory. Pure Python, run once at load; no tensor library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from kernels.api import (
    Buffer,
    Embedding,
    Extent,
    GatedActivation,
    Linear,
    PagedAttention,
    Program,
    RmsNorm,
    Rotary,
    StoreKv,
    TakeOutputs,
)


@dataclass(frozen=True, slots=True)
class LinearGroup:
    """Linear layers over the same rows, computed as one. `out` spans the outputs, which lie side by side, in order."""

    members: tuple[Linear, ...]
    out: Buffer

    @property
    def x(self) -> Buffer:
        return self.members[0].x

    @property
    def residual(self) -> Buffer | None:
        """Only a group of one has a residual."""
        return self.members[0].residual


LoweredOp = (
    Embedding
    | RmsNorm
    | LinearGroup
    | Rotary
    | StoreKv
    | PagedAttention
    | GatedActivation
    | TakeOutputs
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A piece of memory: `width` float32 for each row of its extent."""

    width: int
    extent: Extent


@dataclass(frozen=True, slots=True)
class Placement:
    """A buffer's rows lie `pitch` apart in the slot; it has columns [start, start + width) of them."""

    slot: int
    pitch: int
    start: int
    width: int

    @property
    def is_contiguous(self) -> bool:
        return self.pitch == self.width


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """`placements` is indexed by `Buffer.index`; outputs of merged layers follow the program's own buffers."""

    ops: tuple[LoweredOp, ...]
    slots: tuple[Slot, ...]
    placements: tuple[Placement, ...]


def lower(program: Program) -> LoweredProgram:
    """Merge linear layers and plan the memory of the buffers."""
    ops = tuple(_merge_linears(program))
    planner = _MemoryPlanner(ops, program.logits)
    for position, op in enumerate(ops):
        planner.place(op)
        planner.free_after(position)
    placements = tuple(planner.placements[index] for index in range(len(planner.placements)))
    return LoweredProgram(ops, tuple(planner.slots), placements)


def read_buffers(op: LoweredOp) -> tuple[Buffer, ...]:
    """The buffers an op reads."""
    match op:
        case Embedding():
            return ()
        case RmsNorm() | Rotary() | TakeOutputs():
            return (op.x,)
        case LinearGroup():
            return (op.x,) if op.residual is None else (op.x, op.residual)
        case StoreKv():
            return (op.key, op.value)
        case PagedAttention():
            return (op.query,)
        case GatedActivation():
            return (op.gate, op.up)
        case _:
            assert_never(op)


def written_buffers(op: LoweredOp) -> tuple[Buffer, ...]:
    """The buffers an op writes; they get memory side by side."""
    match op:
        case LinearGroup():
            return tuple(member.out for member in op.members)
        case StoreKv():
            return ()
        case _:
            return (op.out,)


def _merge_linears(program: Program) -> Iterator[LoweredOp]:
    """Neighbouring linear layers of one input become a group."""
    next_index = len(program.buffers)
    group: list[Linear] = []

    def close_group() -> Iterator[LinearGroup]:
        nonlocal next_index
        if len(group) == 1:
            yield LinearGroup((group[0],), group[0].out)
        elif group:
            width = sum(member.out.width for member in group)
            yield LinearGroup(tuple(group), Buffer(next_index, width, group[0].out.extent))
            next_index += 1
        group.clear()

    for op in program.ops:
        if not isinstance(op, Linear):
            yield from close_group()
            yield op
            continue
        if group and not _may_share(group[-1], op):
            yield from close_group()
        group.append(op)
    yield from close_group()


def _may_share(a: Linear, b: Linear) -> bool:
    """A residual keeps a layer apart, and so does a bias beside a layer without one."""
    return (
        a.x == b.x
        and a.residual is None
        and b.residual is None
        and (a.bias is None) == (b.bias is None)
    )


class _MemoryPlanner:
    """Hands out slots in program order; a slot is free again after the last read of everything in it."""

    def __init__(self, ops: tuple[LoweredOp, ...], logits: Buffer) -> None:
        self.slots: list[Slot] = []
        self.placements: dict[int, Placement] = {}
        self._free: list[int] = []
        self._last_use: dict[int, int] = {}
        for position, op in enumerate(ops):
            for buffer in (*written_buffers(op), *read_buffers(op)):
                self._last_use[buffer.index] = position
        self._last_use[logits.index] = len(ops)  # the caller reads it after the last op
        self._alive: dict[int, set[int]] = {}

    def place(self, op: LoweredOp) -> None:
        """Give the outputs of `op` one slot, side by side."""
        buffers = written_buffers(op)
        if not buffers:
            return
        pitch = sum(buffer.width for buffer in buffers)
        slot = self._take(pitch, buffers[0].extent)
        self._alive[slot] = {buffer.index for buffer in buffers}
        start = 0
        for buffer in buffers:
            self.placements[buffer.index] = Placement(slot, pitch, start, buffer.width)
            start += buffer.width
        if isinstance(op, LinearGroup):
            self.placements[op.out.index] = Placement(slot, pitch, 0, pitch)

    def free_after(self, position: int) -> None:
        """Release the slots of which nothing is read after op number `position`."""
        done = [
            slot
            for slot, indices in self._alive.items()
            if all(self._last_use[index] <= position for index in indices)
        ]
        for slot in done:
            del self._alive[slot]
            self._free.append(slot)

    def _take(self, width: int, extent: Extent) -> int:
        """A free slot: the narrowest that is wide enough, else the widest, made wider, else a new one."""
        fitting = [slot for slot in self._free if self.slots[slot].extent is extent]
        if not fitting:
            self.slots.append(Slot(width, extent))
            return len(self.slots) - 1
        enough = [slot for slot in fitting if self.slots[slot].width >= width]
        if enough:
            best = min(enough, key=lambda slot: self.slots[slot].width)
        else:
            best = max(fitting, key=lambda slot: self.slots[slot].width)
            self.slots[best] = Slot(width, extent)
        self._free.remove(best)
        return best
