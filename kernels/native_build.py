"""Builds a native program: packs weights, makes buffers, and adds the lowered phases one by one.

Used once for each compiled program, by the thread that will run it. No torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kernels.api import (
    Activation,
    Buffer,
    Embedding,
    Extent,
    GatedActivation,
    Linear,
    PagedAttention,
    Program,
    RmsNorm,
    RotaryShape,
    TakeOutputs,
    WeightRef,
)
from kernels.cpu import declarations as native
from kernels.cpu.library import NativeLibrary, ThreadTeam
from kernels.kv_layout import KvPool, KvType
from kernels.likeliest import FoundRows
from kernels.native_lowering import (
    GatedLinearPhase,
    HeadsPhase,
    HeadStream,
    Kind,
    LinearInput,
    LinearPhase,
    Phase,
    Sink,
    lower,
)
from kernels.native_memory import MemoryPlan, plan_memory
from kernels.quant import block_format
from kernels.weight_store import WeightStore

_KINDS = {
    Kind.ROWS: native.BufferKind.ROWS,
    Kind.FLOAT: native.BufferKind.FLOAT_OPERAND,
    Kind.QUANTIZED: native.BufferKind.QUANTIZED_OPERAND,
    Kind.BFLOAT: native.BufferKind.BFLOAT_OPERAND,
    Kind.PAIRED: native.BufferKind.PAIRED_OPERAND,
}
_EXTENTS = {Extent.TOKENS: native.RowExtent.TOKENS, Extent.OUTPUTS: native.RowExtent.OUTPUTS}
_SINKS = {
    Sink.ROWS: native.HeadSink.ROWS,
    Sink.KEYS: native.HeadSink.KEYS,
    Sink.VALUES: native.HeadSink.VALUES,
}
_KV_TYPES = {
    KvType.F16: native.KvKind.F16,
    KvType.F32: native.KvKind.F32,
    KvType.Q8_0: native.KvKind.Q8_0,
}
_ACTIVATIONS = {Activation.SILU: 0, Activation.GELU_TANH: 1}
_VECTOR_PADDING = 16  # floats; a kernel reads biases by whole vectors


class NativeWeights:
    """Packed weights and small float vectors, each made once; closed by its owner."""

    def __init__(self, library: NativeLibrary, team: ThreadTeam, source: WeightStore) -> None:
        self._library = library
        self._team = team
        self._source = source
        self._packed: dict[str, int] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    @property
    def num_bytes(self) -> int:
        """Memory of the packed weights."""
        measure = self._library.functions.layby_weight_bytes
        return sum(measure(handle) for handle in self._packed.values())

    def packed(self, ref: WeightRef) -> int:
        """A matrix in the form that kernels read."""
        if ref.name not in self._packed:
            stored = self._source.stored(ref.name)
            if stored.shape != ref.shape or len(ref.shape) != 2:
                raise ValueError(f"{ref.name} is {stored.shape}, the model expects {ref.shape}")
            raw = np.frombuffer(stored.data, np.uint8)
            expected = block_format(stored.storage).num_bytes(ref.shape)
            if raw.size != expected:
                raise ValueError(f"{ref.name} has {raw.size} bytes, {expected} are expected")
            self._packed[ref.name] = self._library.check(
                self._library.functions.layby_weight_new(
                    stored.storage.encode(), raw.ctypes.data, *ref.shape, self._team.handle
                )
            )
        return self._packed[ref.name]

    def vector(self, ref: WeightRef | None) -> int | None:
        """The address of a norm's or a bias's floats."""
        if ref is None:
            return None
        if ref.name not in self._vectors:
            stored = self._source.stored(ref.name)
            if stored.shape != ref.shape:
                raise ValueError(f"{ref.name} is {stored.shape}, the model expects {ref.shape}")
            size = ref.shape[0]
            padded = np.zeros(-(-size // _VECTOR_PADDING) * _VECTOR_PADDING, np.float32)
            padded[:size] = stored.values()
            self._vectors[ref.name] = padded
        return self._vectors[ref.name].ctypes.data

    def close(self) -> None:
        """Give the memory back. Idempotent."""
        for handle in self._packed.values():
            self._library.functions.layby_weight_free(handle)
        self._packed.clear()


class ProgramBuilder:
    """Adds the phases of one program to one native program."""

    def __init__(self, library: NativeLibrary, program: int, weights: NativeWeights) -> None:
        self._functions = library.functions
        self._check = library.check
        self._program = program
        self._weights = weights
        self._slots: list[int] = []
        self._plan = MemoryPlan((), {}, {})
        self._layers: dict[int, int] = {}
        self._rotaries: dict[tuple[tuple[float, ...], float], int] = {}

    def add(self, program: Program, pool: KvPool, kinds: Mapping[str, Kind]) -> list[str]:
        """Add everything; the names of the native phases, in order."""
        names: list[str] = []
        self._add_pool(pool)
        lowered = lower(program, kinds)
        self._plan = plan_memory(program, lowered)
        self._slots = [
            self._call("buffer", _KINDS[slot.kind], slot.width, _EXTENTS[slot.extent])
            for slot in self._plan.slots
        ]
        for phase in lowered.phases:
            names += self._add_rotaries(phase)
        for place, phase in enumerate(lowered.phases):
            if place in self._plan.scratch_of:
                names.append("prepare")
            names.append(self._add_phase(place, phase))
        return names

    def rows(self, buffer: Buffer, count: int) -> NDArray[np.float32]:
        """The memory of a value's rows, [count, width]; valid as long as the native program."""
        stride = ctypes.c_int64()
        address = self._check(
            self._functions.layby_program_rows(
                self._program, self._slot(buffer), ctypes.byref(stride)
            )
        )
        floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(floats, (count, stride.value))[:, : buffer.width]

    def add_likeliest(self, logits: Buffer, rows: FoundRows) -> None:
        """Find what is wanted of each row of a value and put it into `rows`, which live as long as the program."""
        self._call("likeliest", self._slot(logits), ctypes.byref(rows.struct()))

    def _call(self, what: str, *arguments: object) -> int:
        function = getattr(self._functions, f"layby_program_add_{what}")
        return self._check(function(self._program, *arguments))

    def _slot(self, buffer: Buffer | None) -> int:
        if buffer is None:
            return native.NONE
        return self._slots[self._plan.slot_of[buffer.index]]

    def _add_pool(self, pool: KvPool) -> None:
        pages, layout = pool.pages, pool.layout
        if pages.shape[1:] != (layout.page_bytes,) or not (len(pages) and pages.flags.c_contiguous):
            raise ValueError(f"a pool has pages of {layout.page_bytes} bytes side by side")
        kind, set_pool = _KV_TYPES[layout.kv_type], self._functions.layby_program_set_pool
        self._check(set_pool(self._program, pages.ctypes.data, layout.page_bytes, len(pages), kind))
        for number, kv in layout.layers.items():
            struct = native.KvLayerStruct(
                kv.key_offset, kv.value_offset, kv.kv_heads, kv.head_dim, kv.value_stride
            )
            self._layers[number] = self._call("kv_layer", ctypes.byref(struct))

    def _add_rotaries(self, phase: Phase) -> list[str]:
        names = []
        for stream in phase.streams if isinstance(phase, HeadsPhase) else ():
            if stream.rotary is None or _angles(stream.rotary) in self._rotaries:
                continue
            frequencies = np.array(stream.rotary.inverse_frequencies, np.float32)
            self._rotaries[_angles(stream.rotary)] = self._call(
                "rotary", frequencies.ctypes.data, len(frequencies), stream.rotary.magnitude
            )
            names.append("angles")
        return names

    def _add_phase(self, place: int, phase: Phase) -> str:
        match phase:
            case Embedding(table=table, out=out, scale=scale):
                self._call("embedding", self._weights.packed(table), scale, self._slot(out))
                return "embedding"
            case LinearPhase(parts=parts):
                given = self._input(place, phase.input)
                self._call("linear", given, self._linears(parts), len(parts))
                return "linear " + "+".join(op.weight.name for op in parts)
            case GatedLinearPhase(gate=gate, up=up, op=op):
                self._call(
                    "gated_linear",
                    self._input(place, phase.input),
                    self._linears((gate, up)),
                    _ACTIVATIONS[op.activation],
                    self._slot(op.out),
                )
                return f"gated {gate.weight.name}+{up.weight.name}"
            case HeadsPhase(streams=streams):
                structs = (native.HeadsStruct * len(streams))(*map(self._stream, streams))
                self._call("heads", structs, len(streams))
                return "heads"
            case PagedAttention():
                self._call("attention", ctypes.byref(self._attention(phase)))
                return f"attention {phase.shape.layer}"
            case _:
                return self._add_row_phase(phase)

    def _add_row_phase(self, phase: RmsNorm | GatedActivation | TakeOutputs) -> str:
        match phase:
            case RmsNorm(x=x, weight=weight, out=out):
                address = self._weights.vector(weight)
                self._call(
                    "norm", self._slot(x), self._slot(out), address, phase.epsilon, phase.group
                )
                return f"norm {weight.name}"
            case GatedActivation(gate=gate, up=up, out=out):
                slots = self._slot(gate), self._slot(up)
                self._call("gated", *slots, _ACTIVATIONS[phase.activation], self._slot(out))
                return "gated"
            case TakeOutputs(x=x, out=out):
                self._call("take", self._slot(x), self._slot(out))
                return "take"

    def _input(self, place: int, given: LinearInput) -> native.InputStruct:
        scratch = self._plan.scratch_of.get(place)
        return native.InputStruct(
            self._slot(given.source),
            native.NONE if scratch is None else self._slots[scratch],
            given.gathers,
            given.norm.epsilon if given.norm else 0.0,
            self._weights.vector(given.norm.weight) if given.norm else None,
        )

    def _linears(self, parts: Sequence[Linear]) -> ctypes.Array[native.LinearStruct]:
        return (native.LinearStruct * len(parts))(
            *(
                native.LinearStruct(
                    self._weights.packed(op.weight),
                    self._bias(op),
                    self._slot(op.residual),
                    self._slot(op.out) if op.out.index in self._plan.slot_of else native.NONE,
                )
                for op in parts
            )
        )

    def _bias(self, op: Linear) -> int | None:
        if op.bias is not None and op.bias.shape != (op.out.width,):
            raise ValueError(f"{op.bias.name} is {op.bias.shape}, there are {op.out.width} outputs")
        return self._weights.vector(op.bias)

    def _stream(self, stream: HeadStream) -> native.HeadsStruct:
        return native.HeadsStruct(
            self._slot(stream.source),
            self._slot(stream.out),
            stream.source.width // stream.head_dim,
            stream.head_dim,
            self._weights.vector(stream.norm.weight) if stream.norm else None,
            stream.norm.epsilon if stream.norm else 0.0,
            self._rotaries[_angles(stream.rotary)] if stream.rotary else native.NONE,
            _SINKS[stream.sink],
            self._layers[stream.kv.layer] if stream.kv else native.NONE,
        )

    def _attention(self, op: PagedAttention) -> native.AttentionStruct:
        shape = op.shape
        return native.AttentionStruct(
            self._slot(op.query),
            self._slot(op.out),
            shape.heads,
            self._layers[shape.layer],
            shape.scale,
            shape.window,
        )


def _angles(shape: RotaryShape) -> tuple[tuple[float, ...], float]:
    return (shape.inverse_frequencies, shape.magnitude)


def operand_kinds(program: Program, store: WeightStore, library: NativeLibrary) -> dict[str, Kind]:
    """What the weights of linear layers are multiplied with, by name. NativeError for a storage no kernel reads."""
    by_number = {number: kind for kind, number in _KINDS.items()}
    variant, ask = library.variant.encode(), library.functions.layby_operand_kind
    return {
        op.weight.name: by_number[
            native.BufferKind(library.check(ask(variant, store.storage(op.weight.name).encode())))
        ]
        for op in program.ops
        if isinstance(op, Linear)
    }
