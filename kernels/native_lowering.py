"""Turns a recorded program into the phases that the native kernels run: neighbours that read each other are joined.

A pass of the CPU back end over the recording; models know nothing of it. Pure: no native call, no tensor library.

Every buffer of a recording is written once, so an op may be moved to any place after what it reads. Joined are
- linear layers of one input, in one phase, with the norm and the choice of rows before them;
- gate, up and activation, where nothing else reads the halves;
- what happens to heads before attention (norm, rotation, the pool), in one phase for queries, keys and values.
Anything else runs as it was recorded, so every program runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kernels.api import (
    AttentionShape,
    Buffer,
    Embedding,
    Extent,
    GatedActivation,
    Linear,
    Op,
    PagedAttention,
    Program,
    RmsNorm,
    Rotary,
    RotaryShape,
    StoreKv,
    TakeOutputs,
)

BLOCK = 32
MAX_HEAD_DIM = 512


class Kind(Enum):
    """How a value lies between phases."""

    ROWS = "rows"
    FLOAT = "float operand"
    QUANTIZED = "quantised operand"
    BFLOAT = "operand of bfloat16 pairs"
    PAIRED = "operand of quantised pairs"


@dataclass(frozen=True, slots=True)
class LinearInput:
    """Rows that linear layers read, with the norm and the gathering that come first."""

    source: Buffer
    norm: RmsNorm | None
    gathers: bool
    kind: Kind
    """What the layers' weights multiply."""
    width: int
    extent: Extent


@dataclass(frozen=True, slots=True)
class LinearPhase:
    """Linear layers of one input."""

    input: LinearInput
    parts: tuple[Linear, ...]


@dataclass(frozen=True, slots=True)
class GatedLinearPhase:
    """activation(x · gateᵀ) * (x · upᵀ)."""

    input: LinearInput
    gate: Linear
    up: Linear
    op: GatedActivation


class Sink(Enum):
    """Where the heads of a stream go."""

    ROWS = "rows"
    KEYS = "keys"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class HeadStream:
    """Heads of one buffer on their way: norm, rotation, then to `out` or the pool."""

    source: Buffer
    head_dim: int
    norm: RmsNorm | None
    rotary: RotaryShape | None
    sink: Sink
    out: Buffer | None
    kv: AttentionShape | None


@dataclass(frozen=True, slots=True)
class HeadsPhase:
    """Streams that do not read one another."""

    streams: tuple[HeadStream, ...]


Phase = (
    LinearPhase
    | GatedLinearPhase
    | HeadsPhase
    | Embedding
    | RmsNorm
    | PagedAttention
    | GatedActivation
    | TakeOutputs
)


@dataclass(frozen=True, slots=True)
class Lowered:
    """Phases in order, and how the buffers that they pass on lie (ROWS where not named)."""

    phases: tuple[Phase, ...]
    kinds: dict[int, Kind]


def reads(op: Op) -> tuple[Buffer, ...]:
    """The buffers that an op reads."""
    match op:
        case Embedding():
            return ()
        case Linear(x=x, residual=residual):
            return (x,) if residual is None else (x, residual)
        case StoreKv(key=key, value=value):
            return (key, value)
        case PagedAttention(query=query):
            return (query,)
        case GatedActivation(gate=gate, up=up):
            return (gate, up)
        case RmsNorm(x=x) | Rotary(x=x) | TakeOutputs(x=x):
            return (x,)


class Lowering:
    """One run of the pass. `kinds` says what each linear layer's weight is multiplied with."""

    def __init__(self, program: Program, kinds: Mapping[str, Kind]) -> None:
        self._program = program
        self._weight_kinds = kinds
        self._readers: dict[int, list[Op]] = defaultdict(list)
        self._writer: dict[int, Op] = {}
        for op in program.ops:
            for buffer in reads(op):
                self._readers[buffer.index].append(op)
            if not isinstance(op, StoreKv):
                self._writer[op.out.index] = op
        self._done: set[int] = set()
        self._phases: list[Phase] = []
        self._streams: list[HeadStream] = []
        self._kinds: dict[int, Kind] = {}

    def run(self) -> Lowered:
        """Lower all ops."""
        for op in self._program.ops:
            if id(op) not in self._done:
                self._lower(op)
        self._flush_streams()
        return Lowered(tuple(self._phases), self._kinds)

    def _lower(self, op: Op) -> None:
        if isinstance(op, RmsNorm | TakeOutputs) and self._feeds_only_linear(op):
            return None  # joined to the layers that read it
        if isinstance(op, RmsNorm) and self._is_of_heads(op):
            return self._add_head_norm(op)
        if isinstance(op, Rotary):
            return self._add_rotary(op)
        if isinstance(op, StoreKv):
            return self._add_store(op)
        self._flush_streams_before(op)
        match op:
            case Linear():
                self._add_linears(op)
            case PagedAttention(out=out, shape=shape):
                if shape.head_dim % BLOCK == 0:
                    self._pass_on_prepared(out)
                self._phases.append(op)
            case _:
                self._phases.append(op)
        return None

    # Linear layers

    def _kind_of(self, linear: Linear) -> Kind:
        return self._weight_kinds[linear.weight.name]

    def _feeds_only_linear(self, op: RmsNorm | TakeOutputs) -> bool:
        """Whether an op is read only by linear layers, or by one more of its like that is."""
        if isinstance(op, RmsNorm) and op.group != op.x.width:
            return False
        if op.out.index == self._program.logits.index:
            return False
        for reader in self._readers[op.out.index]:
            if isinstance(reader, Linear) and reader.x.index == op.out.index:
                if reader.residual is not None and reader.residual.index == op.out.index:
                    return False
                continue
            other = TakeOutputs if isinstance(op, RmsNorm) else RmsNorm
            if not isinstance(reader, other) or not self._feeds_only_linear_directly(reader):
                return False
        return bool(self._readers[op.out.index])

    def _feeds_only_linear_directly(self, op: RmsNorm | TakeOutputs) -> bool:
        whole = not isinstance(op, RmsNorm) or op.group == op.x.width
        readers = self._readers[op.out.index]
        return (
            whole
            and bool(readers)
            and all(isinstance(r, Linear) and r.residual != op.out for r in readers)
        )

    def _input_of(self, linear: Linear) -> LinearInput:
        source, norm, gathers = linear.x, None, False
        while True:
            writer = self._writer[source.index]
            if not isinstance(writer, RmsNorm | TakeOutputs) or not self._feeds_only_linear(writer):
                break
            if isinstance(writer, RmsNorm):
                norm = writer
            else:
                gathers = True
            source = writer.x
        x = linear.x
        return LinearInput(source, norm, gathers, self._kind_of(linear), x.width, x.extent)

    def _add_linears(self, first: Linear) -> None:
        kind = self._kind_of(first)
        together = [
            op
            for op in self._readers[first.x.index]
            if isinstance(op, Linear)
            and op.x == first.x
            and id(op) not in self._done
            and self._kind_of(op) is kind
            and (op is first or op.residual is None)
        ]
        self._done.update(id(op) for op in together)
        given = self._input_of(first)
        self._flush_streams_writing(given.source)
        plain = []
        for op in together:
            gated = self._gated_pair(op, together)
            if gated is None:
                plain.append(op)
            elif gated.gate == op.out:
                self._add_gated(given, gated, together)
        if plain:
            self._phases.append(LinearPhase(given, tuple(plain)))

    def _gated_pair(self, op: Linear, together: list[Linear]) -> GatedActivation | None:
        """The activation that alone reads this layer, if its other half is computed here too."""
        readers = self._readers[op.out.index]
        if len(readers) != 1 or not isinstance(readers[0], GatedActivation) or op.residual:
            return None
        gated = readers[0]
        halves = {gated.gate.index, gated.up.index}
        here = {other.out.index for other in together if other.residual is None}
        alone = all(len(self._readers[half]) == 1 for half in halves)
        if len(halves) < 2 or not halves <= here or not alone or op.out.width % BLOCK:
            return None
        return gated

    def _add_gated(
        self, given: LinearInput, gated: GatedActivation, together: list[Linear]
    ) -> None:
        layers = {op.out.index: op for op in together}
        self._pass_on_prepared(gated.out)
        self._done.add(id(gated))
        self._phases.append(
            GatedLinearPhase(given, layers[gated.gate.index], layers[gated.up.index], gated)
        )

    def _pass_on_prepared(self, out: Buffer) -> None:
        """Let a value go to its readers prepared, where all are linear layers of one kind."""
        readers = self._readers[out.index]
        if not readers or out.index == self._program.logits.index:
            return
        if not all(isinstance(r, Linear) and r.x == out and r.residual != out for r in readers):
            return
        kinds = {self._kind_of(r) for r in readers if isinstance(r, Linear)}
        if len(kinds) == 1:
            self._kinds[out.index] = kinds.pop()

    # Heads

    def _is_of_heads(self, op: RmsNorm) -> bool:
        return op.group <= MAX_HEAD_DIM and op.x.extent is Extent.TOKENS

    def _alone_reads(self, reader: Op, buffer: Buffer) -> bool:
        readers = self._readers[buffer.index]
        return len(readers) == 1 and readers[0] is reader

    def _add_head_norm(self, op: RmsNorm) -> None:
        self._flush_streams_before(op)
        self._streams.append(HeadStream(op.x, op.group, op, None, Sink.ROWS, op.out, None))

    def _take_stream(self, buffer: Buffer, reader: Op) -> HeadStream | None:
        """The waiting stream that writes `buffer` for `reader` alone; it then waits no more."""
        for stream in self._streams:
            if stream.out == buffer and self._alone_reads(reader, buffer):
                self._streams.remove(stream)
                return stream
        return None

    def _add_rotary(self, op: Rotary) -> None:
        before = self._take_stream(op.x, op)
        if before and (before.rotary or before.head_dim != op.shape.head_dim):
            self._streams.append(before)
            before = None
        self._flush_streams_before(op)
        source, norm = (before.source, before.norm) if before else (op.x, None)
        self._streams.append(
            HeadStream(source, op.shape.head_dim, norm, op.shape, Sink.ROWS, op.out, None)
        )

    def _add_store(self, op: StoreKv) -> None:
        for buffer, sink in ((op.key, Sink.KEYS), (op.value, Sink.VALUES)):
            before = self._take_stream(buffer, op)
            if before and before.head_dim != op.shape.head_dim:
                self._streams.append(before)
                before = None
            if before is None and any(stream.out == buffer for stream in self._streams):
                self._flush_streams()
            source, norm, rotary = buffer, None, None
            if before:
                source, norm, rotary = before.source, before.norm, before.rotary
            self._streams.append(
                HeadStream(source, op.shape.head_dim, norm, rotary, sink, None, op.shape)
            )

    def _flush_streams_before(self, op: Op) -> None:
        if isinstance(op, PagedAttention):
            self._flush_streams()
        for buffer in reads(op):
            self._flush_streams_writing(buffer)

    def _flush_streams_writing(self, buffer: Buffer) -> None:
        if any(stream.out == buffer for stream in self._streams):
            self._flush_streams()

    def _flush_streams(self) -> None:
        if self._streams:
            self._phases.append(HeadsPhase(tuple(self._streams)))
            self._streams = []


def lower(program: Program, kinds: Mapping[str, Kind]) -> Lowered:
    """The phases of a program. Changes nothing."""
    return Lowering(program, kinds).run()
