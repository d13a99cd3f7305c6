"""The ops a model may use, recorded once and run many times.

A model calls the methods of `Recorder` at load time, once; the result is a `Program`: a flat list of `Op`s over named
`Buffer`s whose sizes are known except for the number of rows of a step. A back end compiles the program against real
memory and runs all of it in one call a step; the torch back end (`kernels.torch_backend`) runs it op by op. Nothing
here knows a device or a tensor library.

Rows: a step computes R token rows (several sequences, any mix of prompt chunks and single tokens). A buffer of extent
TOKENS has R rows; of extent OUTPUTS one row for each token whose logits are wanted.

Exactness: every op computes a row from that row's inputs and the weights alone, in one order, whatever stands beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from kernels.wishes import Wish


class Extent(Enum):
    """What the number of rows of a buffer follows."""

    TOKENS = "tokens"
    OUTPUTS = "outputs"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A float32 matrix [rows, width] that lives for one step. Compared by identity of `index`."""

    index: int
    width: int
    extent: Extent


@dataclass(frozen=True, slots=True)
class WeightRef:
    """A parameter by its canonical name, with the shape the model expects ([out, in] for linear layers)."""

    name: str
    shape: tuple[int, ...]


class Activation(Enum):
    """Gate functions of a gated MLP."""

    SILU = "silu"
    GELU_TANH = "gelu_tanh"


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads of one attention layer. `scale` multiplies q·k; query head h reads key head h // (heads // kv_heads)."""

    layer: int
    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    window: int = 0
    """Sliding window in tokens: a query sees its own and the window - 1 positions before it; 0 sees all."""


@dataclass(frozen=True, slots=True)
class RotaryShape:
    """Rotary embedding of a [rows, heads * head_dim] buffer, over the first `rotary_dim` of each head.

    Value i of a head turns with value i + rotary_dim / 2. Models whose files pair (2i, 2i + 1) get the rows of their
    query and key weights reordered when they are loaded, which leaves every product of a query and a key as it was.
    """

    heads: int
    head_dim: int
    rotary_dim: int
    inverse_frequencies: tuple[float, ...]
    """rotary_dim / 2 angles per position, scaling of long contexts already applied."""
    magnitude: float = 1.0
    """Multiplies cosine and sine (YaRN's attention factor)."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """out[r] = table[token[r]] * scale."""

    table: WeightRef
    out: Buffer
    scale: float


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """Each `group` values of a row divided by their root mean square, times weight (whole rows if group = width)."""

    x: Buffer
    weight: WeightRef
    out: Buffer
    epsilon: float
    group: int


@dataclass(frozen=True, slots=True)
class Linear:
    """out = x · weightᵀ (+ bias) (+ residual). weight is [out.width, x.width]."""

    x: Buffer
    weight: WeightRef
    bias: WeightRef | None
    residual: Buffer | None
    out: Buffer


@dataclass(frozen=True, slots=True)
class Rotary:
    """out = x rotated by its token's position."""

    x: Buffer
    out: Buffer
    shape: RotaryShape


@dataclass(frozen=True, slots=True)
class StoreKv:
    """Write key and value rows to the pool at each token's position in its sequence's pages."""

    key: Buffer
    value: Buffer
    shape: AttentionShape


@dataclass(frozen=True, slots=True)
class PagedAttention:
    """out = attention of each query row over its own sequence's positions [0, own position], read from the pool."""

    query: Buffer
    out: Buffer
    shape: AttentionShape


@dataclass(frozen=True, slots=True)
class GatedActivation:
    """out = activation(gate) * up."""

    gate: Buffer
    up: Buffer
    out: Buffer
    activation: Activation


@dataclass(frozen=True, slots=True)
class TakeOutputs:
    """out = the rows of x whose logits are wanted (extent TOKENS -> OUTPUTS)."""

    x: Buffer
    out: Buffer


Op = (
    Embedding | RmsNorm | Linear | Rotary | StoreKv | PagedAttention | GatedActivation | TakeOutputs
)


@dataclass(frozen=True, slots=True)
class Program:
    """A recorded step: ops in order, all buffers and weights, and the buffer that ends as [outputs, vocabulary]."""

    ops: tuple[Op, ...]
    buffers: tuple[Buffer, ...]
    weights: tuple[WeightRef, ...]
    logits: Buffer


class Recorder:
    """Records ops in the order they are called; each returns the buffer it writes. ValueError on widths that misfit."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._buffers: list[Buffer] = []
        self._weights: dict[str, WeightRef] = {}

    def embedding(self, table: WeightRef, *, scale: float = 1.0) -> Buffer:
        """Rows of `table` [vocabulary, width] for the step's tokens."""
        out = self._buffer(table.shape[1])
        self._record(Embedding(self._weight(table), out, scale))
        return out

    def rms_norm(self, x: Buffer, weight: WeightRef, *, epsilon: float) -> Buffer:
        """Normalise whole rows, or heads when the weight is as long as one head."""
        group = weight.shape[0]
        if x.width % group:
            raise ValueError(
                f"{weight.name}: rows of {x.width} are no multiple of its {group} values"
            )
        out = self._buffer(x.width, x.extent)
        self._record(RmsNorm(x, self._weight(weight), out, epsilon, group))
        return out

    def linear(
        self,
        x: Buffer,
        weight: WeightRef,
        *,
        bias: WeightRef | None = None,
        residual: Buffer | None = None,
    ) -> Buffer:
        """x · weightᵀ, with bias and residual added to the finished sum."""
        num_out, num_in = weight.shape
        if num_in != x.width:
            raise ValueError(f"{weight.name}: takes {num_in} values, the buffer has {x.width}")
        out = self._buffer(num_out, x.extent)
        bias = self._weight(bias) if bias is not None else None
        self._record(Linear(x, self._weight(weight), bias, residual, out))
        return out

    def rotary(self, x: Buffer, shape: RotaryShape) -> Buffer:
        """Rotate each head of x by its token's position."""
        if x.width != shape.heads * shape.head_dim:
            raise ValueError(
                f"rotary: {shape.heads} heads of {shape.head_dim}, the buffer has {x.width}"
            )
        out = self._buffer(x.width, x.extent)
        self._record(Rotary(x, out, shape))
        return out

    def store_kv(self, key: Buffer, value: Buffer, shape: AttentionShape) -> None:
        """Put this step's keys and values into the pool, before any attention of the layer reads it."""
        self._record(StoreKv(key, value, shape))

    def attention(self, query: Buffer, shape: AttentionShape) -> Buffer:
        """Causal attention over the pool."""
        if query.width != shape.heads * shape.head_dim:
            raise ValueError(
                f"attention: {shape.heads} heads of {shape.head_dim}, the buffer has {query.width}"
            )
        out = self._buffer(query.width, query.extent)
        self._record(PagedAttention(query, out, shape))
        return out

    def gated_activation(self, gate: Buffer, up: Buffer, activation: Activation) -> Buffer:
        """activation(gate) * up."""
        out = self._buffer(gate.width, gate.extent)
        self._record(GatedActivation(gate, up, out, activation))
        return out

    def take_outputs(self, x: Buffer) -> Buffer:
        """Keep the rows whose logits are wanted."""
        out = self._buffer(x.width, Extent.OUTPUTS)
        self._record(TakeOutputs(x, out))
        return out

    def finish(self, logits: Buffer) -> Program:
        """Close the recording."""
        return Program(
            tuple(self._ops), tuple(self._buffers), tuple(self._weights.values()), logits
        )

    def _buffer(self, width: int, extent: Extent = Extent.TOKENS) -> Buffer:
        buffer = Buffer(len(self._buffers), width, extent)
        self._buffers.append(buffer)
        return buffer

    def _weight(self, weight: WeightRef) -> WeightRef:
        known = self._weights.setdefault(weight.name, weight)
        if known.shape != weight.shape:
            raise ValueError(
                f"{weight.name}: recorded with shape {known.shape}, now {weight.shape}"
            )
        return known

    def _record(self, op: Op) -> None:
        self._ops.append(op)


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What changes from step to step; plain integers, row by row.

    Row r is token `token_ids[r]` at `positions[r]` of sequence `sequences[r]` (an index into `page_tables`); rows of
    one sequence stand together, positions ascending. `outputs` are the rows whose logits are wanted; `wishes`, empty or
    one of each output, what is wanted of them besides. A back end may find nothing.
    """

    token_ids: list[int]
    positions: list[int]
    sequences: list[int]
    page_tables: list[list[int]]
    outputs: list[int]
    wishes: Sequence[Wish] = ()
