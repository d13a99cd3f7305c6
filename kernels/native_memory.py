"""Which memory each value of a lowered program uses: as little as its phases allow, by when values are last read.

A pass of the CPU back end. Pure: counts and indices, no native call.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from kernels.api import (
    Buffer,
    Embedding,
    Extent,
    GatedActivation,
    PagedAttention,
    Program,
    RmsNorm,
    TakeOutputs,
)
from kernels.native_lowering import (
    GatedLinearPhase,
    HeadsPhase,
    Kind,
    LinearInput,
    LinearPhase,
    Lowered,
    Phase,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory of one shape, used by one value at a time."""

    kind: Kind
    width: int
    extent: Extent


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The slots, which of them each value lies in, and which each phase prepares its input in."""

    slots: tuple[Slot, ...]
    slot_of: dict[int, int]
    """By the index of the value's buffer."""
    scratch_of: dict[int, int]
    """By the place of the phase; absent where a phase prepares nothing."""


def inputs_of(phase: Phase) -> tuple[Buffer, ...]:
    """The values that a phase reads."""
    match phase:
        case LinearPhase(input=given, parts=parts):
            residuals = tuple(op.residual for op in parts if op.residual is not None)
            return (given.source, *residuals)
        case GatedLinearPhase(input=given):
            return (given.source,)
        case HeadsPhase(streams=streams):
            return tuple(stream.source for stream in streams)
        case PagedAttention(query=query):
            return (query,)
        case GatedActivation(gate=gate, up=up):
            return (gate, up)
        case RmsNorm(x=x) | TakeOutputs(x=x):
            return (x,)
        case Embedding():
            return ()


def outputs_of(phase: Phase) -> tuple[tuple[Buffer, Buffer | None], ...]:
    """The values that a phase writes, each with the value whose memory it may take over (if read here last)."""
    match phase:
        case LinearPhase(input=given, parts=parts):
            return tuple(
                (op.out, op.residual if op.residual != given.source else None) for op in parts
            )
        case GatedLinearPhase(op=op):
            return ((op.out, None),)
        case HeadsPhase(streams=streams):
            return tuple((s.out, s.source) for s in streams if s.out is not None)
        case _:
            return ((phase.out, None),)


def prepared_input(phase: Phase) -> LinearInput | None:
    """The input of a linear phase, None for others."""
    return phase.input if isinstance(phase, LinearPhase | GatedLinearPhase) else None


@dataclass(slots=True)
class _Planner:
    kinds: dict[int, Kind]
    last_read: dict[int, int]
    slots: list[Slot] = field(default_factory=list)
    free: dict[Slot, list[int]] = field(default_factory=lambda: defaultdict(list))
    slot_of: dict[int, int] = field(default_factory=dict)
    scratch_of: dict[int, int] = field(default_factory=dict)

    def take(self, slot: Slot) -> int:
        if self.free[slot]:
            return self.free[slot].pop()
        self.slots.append(slot)
        return len(self.slots) - 1

    def kind_of(self, buffer: Buffer) -> Kind:
        return self.kinds.get(buffer.index, Kind.ROWS)

    def plan_phase(self, place: int, phase: Phase) -> None:
        taken_over = set()
        for out, heir_of in outputs_of(phase):
            if heir_of is not None and self._can_take_over(place, phase, heir_of):
                self.slot_of[out.index] = self.slot_of[heir_of.index]
                taken_over.add(heir_of.index)
            else:
                self.slot_of[out.index] = self.take(Slot(self.kind_of(out), out.width, out.extent))
        given = prepared_input(phase)
        if given is not None and self.kind_of(given.source) is Kind.ROWS:
            scratch = Slot(given.kind, given.width, given.extent)
            self.scratch_of[place] = self.take(scratch)
            self.free[scratch].append(self.scratch_of[place])
        for buffer in {b.index: b for b in inputs_of(phase)}.values():
            if self.last_read[buffer.index] == place and buffer.index not in taken_over:
                slot = self.slot_of[buffer.index]
                self.free[self.slots[slot]].append(slot)

    def _can_take_over(self, place: int, phase: Phase, buffer: Buffer) -> bool:
        alone = sum(b == buffer for b in inputs_of(phase)) == 1
        return alone and self.last_read[buffer.index] == place and self.kind_of(buffer) is Kind.ROWS


def plan_memory(program: Program, lowered: Lowered) -> MemoryPlan:
    """Slots for all values. The logits keep theirs to the end."""
    last_read = {
        buffer.index: place
        for place, phase in enumerate(lowered.phases)
        for buffer in inputs_of(phase)
    }
    last_read[program.logits.index] = len(lowered.phases)
    planner = _Planner(lowered.kinds, last_read)
    for place, phase in enumerate(lowered.phases):
        planner.plan_phase(place, phase)
    return MemoryPlan(tuple(planner.slots), planner.slot_of, planner.scratch_of)
