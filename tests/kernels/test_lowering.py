"""Merged linear layers and shared memory: no buffer is overwritten while it is still to be read."""

import pytest

from fakes.tiny_programs import TinyProgram
from kernels.api import Extent, Program
from kernels.lowering import LinearGroup, LoweredProgram, lower, read_buffers, written_buffers

PROGRAMS = [
    TinyProgram(),
    TinyProgram(qk_norm=True, bias=True),
    TinyProgram(layers=5, windows=(0,) * 5, ffn=16),
]


@pytest.mark.parametrize("shape", PROGRAMS)
def test_every_read_finds_what_was_written(shape: TinyProgram) -> None:
    """Replays the program, remembering who wrote each column of each slot last."""
    program = shape.record()
    lowered = lower(program)
    owners: list[list[int | None]] = [[None] * slot.width for slot in lowered.slots]

    def columns(index: int) -> slice:
        place = lowered.placements[index]
        return slice(place.start, place.start + place.width)

    for op in lowered.ops:
        for buffer in read_buffers(op):
            slot = owners[lowered.placements[buffer.index].slot]
            assert set(slot[columns(buffer.index)]) == {buffer.index}, op
        for buffer in written_buffers(op):
            place = lowered.placements[buffer.index]
            owners[place.slot][:] = [
                owner if owner in _written_together(op) else None for owner in owners[place.slot]
            ]
            owners[place.slot][columns(buffer.index)] = [buffer.index] * place.width
            assert lowered.slots[place.slot].extent is buffer.extent
    last = lowered.placements[program.logits.index]
    assert set(owners[last.slot][: last.width]) == {program.logits.index}


def _written_together(op: object) -> set[int]:
    return {buffer.index for buffer in written_buffers(op)}  # type: ignore[arg-type]


def _groups(lowered: LoweredProgram) -> list[list[str]]:
    return [
        [member.weight.name for member in op.members]
        for op in lowered.ops
        if isinstance(op, LinearGroup)
    ]


def test_layers_of_one_input_are_merged_and_residuals_stay_apart() -> None:
    groups = _groups(lower(TinyProgram(layers=1).record()))
    assert groups == [["0.q", "0.k", "0.v"], ["0.o"], ["0.gate", "0.up"], ["0.down"], ["embed"]]


def test_merged_outputs_lie_side_by_side() -> None:
    lowered = lower(TinyProgram(layers=1).record())
    group = next(op for op in lowered.ops if isinstance(op, LinearGroup))
    places = [lowered.placements[member.out.index] for member in group.members]
    whole = lowered.placements[group.out.index]
    assert whole.is_contiguous
    assert [place.start for place in places] == [0, 96, 128]
    assert whole.width == 160 == places[0].pitch
    assert not places[0].is_contiguous


def test_memory_does_not_grow_with_the_number_of_layers() -> None:
    def width(layers: int) -> int:
        program: Program = TinyProgram(layers=layers, windows=(0,) * layers).record()
        return sum(s.width for s in lower(program).slots if s.extent is Extent.TOKENS)

    assert width(8) == width(2)
