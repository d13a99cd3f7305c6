"""The CPU back end: a recorded program compiled for the native kernels, each step one native call.

A `NativeBackend` holds the library and the team of threads; `compile` packs the weights and builds the native program.
All of it belongs to one thread (the engine's). While a step runs the interpreter lock is free. No torch.

Exact: a row's logits are a function of its own sequence's tokens and the weights, whatever else the step holds, on
however many threads. Between variants (AVX-512 and others) they may differ.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.api import Program, StepInputs
from kernels.cpu.declarations import StepStruct
from kernels.cpu.library import NativeError, NativeLibrary, ThreadTeam
from kernels.kv_layout import KvPool, KvType, PageLayout, page_layout
from kernels.likeliest import FoundRows
from kernels.native_build import NativeWeights, ProgramBuilder, operand_kinds
from kernels.page_copy import NativeMover
from kernels.weight_store import WeightStore
from kernels.wishes import Found


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The largest step that a program is compiled for."""

    rows: int
    outputs: int


class NativeProgram:
    """A compiled program. Made by `NativeBackend.compile`."""

    def __init__(self, library: NativeLibrary, team: ThreadTeam, pool: KvPool) -> None:
        self._library = library
        self.team = team
        self._pool = pool
        self._weights: NativeWeights | None = None
        self._native = 0
        self._logits: list[NDArray[np.float32]] = []
        """Views of the first rows of all logits, by their number: cutting them anew in each step takes longer."""
        self._found = FoundRows(0)
        self._phase_names: list[str] = []

    def build(self, program: Program, source: WeightStore, limits: StepLimits) -> None:
        """Pack the weights and add the phases; see `NativeBackend.compile`."""
        functions = self._library.functions
        self._weights = NativeWeights(self._library, self.team, source)
        self._native = self._library.check(
            functions.layby_program_new(self._library.variant.encode(), limits.rows, limits.outputs)
        )
        builder = ProgramBuilder(self._library, self._native, self._weights)
        kinds = operand_kinds(program, source, self._library)
        self._phase_names = builder.add(program, self._pool, kinds)
        logits = builder.rows(program.logits, limits.outputs)
        self._logits = [logits[:count] for count in range(limits.outputs + 1)]
        self._found = FoundRows(limits.outputs)
        builder.add_likeliest(program.logits, self._found)
        self._phase_names.append("likeliest")

    @property
    def weight_bytes(self) -> int:
        """Memory of the packed weights."""
        return self._weights.num_bytes if self._weights else 0

    def run(self, inputs: StepInputs) -> NDArray[np.float32]:
        """Run one step; the logits [len(inputs.outputs), vocabulary] are valid until the next run.

        Raises NativeError, before anything is computed, for a step that is too large, a token outside the vocabulary
        or a page outside the pool, and after `close`.
        """
        if not (self._native and self.team.handle):
            raise NativeError("the program or its team of threads is closed")
        if not len(inputs.token_ids) == len(inputs.positions) == len(inputs.sequences):
            raise ValueError(
                f"{len(inputs.token_ids)} tokens, {len(inputs.positions)} positions and "
                f"{len(inputs.sequences)} sequences: a step has one of each a row"
            )
        if len(inputs.wishes) not in (0, len(inputs.outputs)):
            raise ValueError(f"{len(inputs.wishes)} wishes for {len(inputs.outputs)} outputs")
        step, _numbers = self._step_of(inputs)
        functions = self._library.functions
        self._library.check(
            functions.layby_program_run(self._native, self.team.handle, ctypes.byref(step))
        )
        return self._logits[len(inputs.outputs)]

    def found(self) -> list[Found]:
        """What `StepInputs.wishes` wanted of each row of the latest logits; empty where nothing was.

        None for a row of which nothing was wanted, or one of whose logits is NaN or +inf.
        """
        return self._found.found()

    def _step_of(self, inputs: StepInputs) -> tuple[StepStruct, array[int]]:
        """A step as the kernels take it, and the memory that it points to."""
        rows, outputs, tables = len(inputs.token_ids), len(inputs.outputs), inputs.page_tables
        numbers = array("i", inputs.token_ids)
        numbers.extend(inputs.positions)
        numbers.extend(inputs.sequences)
        numbers.extend(inputs.outputs)
        stride = max(map(len, tables), default=0)
        for table in tables:
            numbers.extend(table)
            if len(table) < stride:
                numbers.extend([-1] * (stride - len(table)))
        begin, size = numbers.buffer_info()[0], numbers.itemsize
        output_rows = begin + 3 * rows * size
        pages = output_rows + outputs * size
        wishes = self._found.want(inputs.wishes)
        step = StepStruct(
            rows,
            outputs,
            len(tables),
            stride,
            begin,
            begin + rows * size,
            begin + 2 * rows * size,
            pages,
            output_rows,
            wishes if inputs.wishes else None,
        )
        return step, numbers

    def profile(self, run: Callable[[], object]) -> list[tuple[str, float]]:
        """Name and seconds of each phase of the last step that `run` runs."""
        functions = self._library.functions
        times = np.zeros(functions.layby_program_phases(self._native), np.int64)
        functions.layby_program_profile(self._native, 1, times.ctypes.data)
        run()
        functions.layby_program_profile(self._native, 0, times.ctypes.data)
        return [(name, time / 1e9) for name, time in zip(self._phase_names, times, strict=True)]

    def close(self) -> None:
        """Give the weights' memory back. Idempotent; the logits of the last run are gone too."""
        if self._native:
            self._library.functions.layby_program_free(self._native)
        self._native = 0
        self._logits = []
        self._found = FoundRows(0)
        if self._weights:
            self._weights.close()

    def __del__(self) -> None:
        self.close()


class NativeBackend:
    """Compiles programs for the native kernels and runs them on one team of threads."""

    def __init__(self, library: NativeLibrary, threads: int) -> None:
        """ValueError for less than one thread."""
        self._library = library
        self.team = ThreadTeam(library, threads)

    @property
    def variant(self) -> str:
        """The instruction set in use."""
        return self._library.variant

    def page_layout(self, program: Program, kv_type: KvType = KvType.F16) -> PageLayout:
        """What a page of this back end holds for that program."""
        return page_layout(program, kv_type)

    def make_mover(self) -> NativeMover:
        """What copies pages on the same team."""
        return NativeMover(self._library, self.team)

    def compile(
        self, program: Program, weights: WeightStore, pool: KvPool, limits: StepLimits
    ) -> NativeProgram:
        """Pack the weights and build the program.

        Raises KeyError for a weight that is not there, ValueError for one of another shape, NativeError for a
        storage or a shape that no kernel takes, MemoryError.
        """
        compiled = NativeProgram(self._library, self.team, pool)
        try:
            compiled.build(program, weights, limits)
        except BaseException:
            compiled.close()
            raise
        return compiled

    def close(self) -> None:
        """Stop the threads. Idempotent."""
        self.team.close()
