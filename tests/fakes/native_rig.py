"""Programs and weights for tests of the native kernels, and a way to run them that closes what it opens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.numpy_reference import NumpyProgram
from fakes.weight_blocks import random_blocks
from kernels.api import Buffer, Program, Recorder, StepInputs, WeightRef
from kernels.cpu.declarations import BufferKind
from kernels.cpu.library import NativeUnavailable, load_library
from kernels.host_memory import reserve
from kernels.kv_layout import KvPool, KvType
from kernels.native_backend import NativeBackend, NativeProgram, StepLimits
from kernels.quant import BLOCK_FORMATS, dequantize
from kernels.weight_store import StoredWeight

STORAGES = tuple(BLOCK_FORMATS)
FLOATS = ("F32", "F16", "BF16")
QUANTIZED = tuple(name for name in STORAGES if name not in FLOATS)
ROW_COUNTS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 300)
MOST_ROWS = max(ROW_COUNTS)


def variants_here() -> tuple[str, ...]:
    """The variants this machine can run; none where the kernels are not built."""
    try:
        return load_library().variants
    except NativeUnavailable:
        return ()


VARIANTS = variants_here()
needs_kernels = pytest.mark.skipif(not VARIANTS, reason="the native kernels are not built")


def every_variant(longer: Iterable[object], shorter: Iterable[object]) -> list[object]:
    """Parameters: each variant with every pair of two axes' values.

    The portable one, which takes longest, has each value of the longer axis with one of the shorter one's, in turn; the
    rest of its pairs are for the full run.
    """
    others = list(shorter)
    return [
        pytest.param(variant, one, other, marks=pytest.mark.full)
        if variant == "portable" and place % len(others) != turn
        else pytest.param(variant, one, other)
        for variant in VARIANTS
        for place, one in enumerate(longer)
        for turn, other in enumerate(others)
    ]


def is_paired(storage: str, variant: str) -> bool:
    """Whether that variant multiplies weights of that storage with values that share bytes in twos."""
    library = load_library(variant)
    kind = library.functions.layby_operand_kind(variant.encode(), storage.encode())
    return library.check(kind) == BufferKind.PAIRED_OPERAND


def encode(values: NDArray[np.float32], storage: str) -> NDArray[np.uint8]:
    """Bytes of a tensor in that storage, near the values where gguf can quantise, random otherwise."""
    kind = gguf.GGMLQuantizationType[storage]
    try:
        return np.ascontiguousarray(gguf.quantize(values, kind)).view(np.uint8).reshape(-1)
    except NotImplementedError:
        return random_blocks(storage, values.shape, seed=values.shape[0])


@dataclass
class Weights:
    """A weight source over named tensors."""

    tensors: Mapping[str, StoredWeight]

    def storage(self, name: str) -> str:
        return self.tensors[name].storage

    def stored(self, name: str) -> StoredWeight:
        return self.tensors[name]

    def values(self) -> dict[str, NDArray[np.float32]]:
        return {
            name: dequantize(np.frombuffer(w.data, np.uint8), w.storage, w.shape)
            for name, w in self.tensors.items()
        }


class ModelWeights:
    """Names weights as a model records them and makes up their values."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.tensors: dict[str, StoredWeight] = {}

    def add(self, name: str, shape: tuple[int, ...], storage: str = "F32") -> WeightRef:
        """A matrix of outputs about as large as its inputs, or a vector around one."""
        if len(shape) == 1:
            values = self._rng.uniform(0.5, 1.5, shape)
        else:
            values = self._rng.standard_normal(shape) / np.sqrt(shape[-1])
        return self.put(name, values.astype(np.float32), storage)

    def put(self, name: str, values: NDArray[np.float32], storage: str = "F32") -> WeightRef:
        self.tensors[name] = StoredWeight(storage, encode(values, storage), values.shape)
        return WeightRef(name, values.shape)

    def source(self) -> Weights:
        return Weights(self.tensors)


@contextlib.contextmanager
def compiled(
    program: Program,
    weights: Weights,
    *,
    variant: str | None = None,
    threads: int = 2,
    pages: int = 8,
    rows: int = 300,
    kv_type: KvType = KvType.F16,
) -> Iterator[NativeProgram]:
    """The program on the native kernels, with a pool of its own."""
    backend = NativeBackend(load_library(variant), threads)
    layout = backend.page_layout(program, kv_type)
    memory = np.frombuffer(reserve(pages * layout.page_bytes), np.uint8)
    pool = KvPool(layout, memory.reshape(pages, layout.page_bytes))
    pool.pages[...] = 0xFF  # not numbers: what lies where nobody wrote must not matter
    native = backend.compile(program, weights, pool, StepLimits(rows, rows))
    try:
        yield native
    finally:
        native.close()
        backend.close()


def reference(program: Program, weights: Weights, kv_type: KvType = KvType.F32) -> NumpyProgram:
    return NumpyProgram(program, weights.values(), kv_type)


def rows_program(weights: ModelWeights, inputs: NDArray[np.float32]) -> tuple[Recorder, Buffer]:
    """A recorder whose first value holds row `token` of `inputs` for each token."""
    recorder = Recorder()
    return recorder, recorder.embedding(weights.put("rows", inputs))


def odd_rows(width: int, seed: int = 1) -> NDArray[np.float32]:
    """Rows of ordinary size, among them zeros, tiny, huge and lopsided ones."""
    rows = np.random.default_rng(seed).standard_normal((MOST_ROWS, width)).astype(np.float32)
    rows[3] = 0
    rows[5] *= 1e-30
    rows[7::10] *= 1000
    rows[8::10, :40] *= 500
    return rows


def all_outputs(tokens: Sequence[int]) -> StepInputs:
    """A step of one sequence from position 0, with every row wanted."""
    count = len(tokens)
    pages = list(range(-(-count // 32)))
    return StepInputs(list(tokens), list(range(count)), [0] * count, [pages], list(range(count)))


def one_page_each(tokens: Sequence[int]) -> StepInputs:
    """A step of as many sequences as rows, each at position 0 of page 0: for programs without attention."""
    count = len(tokens)
    return StepInputs(
        list(tokens), [0] * count, list(range(count)), [[0]] * count, list(range(count))
    )
