"""Steps on the native CPU kernels: quantised weights as the file has them, one native call a step. Engine thread."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from engine.api import Device, KvType
from engine.errors import DeviceFailure, UnsupportedModel
from engine.runtime.compute import Limits, OnProgress, RecordedModel
from engine.runtime.stored_weights import StoredWeights
from kernels.api import StepInputs
from kernels.cpu.library import LIBRARY_PATH, NativeError, NativeLibrary
from kernels.kv_layout import KvPool, PageLayout, page_layout
from kernels.kv_layout import KvType as PageNumbers
from kernels.native_backend import NativeBackend as Kernels
from kernels.native_backend import NativeProgram, StepLimits

if TYPE_CHECKING:
    from engine.runtime.kv_arena import Pages

_TYPES = {
    KvType.F16: PageNumbers.F16,
    KvType.F32: PageNumbers.F32,
    KvType.Q8_0: PageNumbers.Q8_0,
}
_PACKING = 1.04
"""Packed weights take up to this much of the file's: some storages' scales are widened to 8 bits."""


class NativeBackend:
    """Implements `compute.Backend`."""

    device = Device.CPU

    def __init__(
        self, model: RecordedModel, kv_type: KvType, library: NativeLibrary, threads: int
    ) -> None:
        self._model = model
        self._library = library
        self._threads = threads
        self._layout = page_layout(model.program, _TYPES[kv_type])
        self.page_bytes = self._layout.page_bytes
        tensors = model.checkpoint.tensors
        stored = sum(tensors[source.tensor].num_bytes for source in model.sources.values())
        self.weight_bytes = int(stored * _PACKING)

    def compile(self, pages: Pages, limits: Limits, on_progress: OnProgress) -> NativeCompute:
        """See `compute.Backend`. Raises UnsupportedModel too, for shapes that no native kernel takes."""
        assert isinstance(pages, np.ndarray), "the native kernels compute on host memory"
        model = self._model
        kernels = self._start()
        weights = StoredWeights(model.checkpoint, model.sources, on_progress)
        pool = KvPool(self._layout, pages)
        try:
            sizes = StepLimits(limits.rows, limits.outputs)
            program = kernels.compile(model.program, weights, pool, sizes)
            return NativeCompute(kernels, program, self._layout, self._compute_id())
        except NativeError as error:
            kernels.close()
            raise UnsupportedModel(
                f"the native kernels do not take this model ({error}); load it with --cpu-variant torch"
            ) from error
        except BaseException:
            kernels.close()
            raise

    def _start(self) -> Kernels:
        try:
            return Kernels(self._library, self._threads)
        except NativeError as error:
            raise DeviceFailure(
                f"the system does not start {self._threads} threads ({error}); set fewer with --threads"
            ) from error

    def _compute_id(self) -> str:
        build = hashlib.sha256(LIBRARY_PATH.read_bytes()).hexdigest()[:16]
        return f"native {self._library.variant} {build} {self._layout.kv_type.name}"


class NativeCompute:
    """Implements `compute.Compute`. Every native kernel is row-invariant by construction, which tests prove."""

    inexact_ops: tuple[str, ...] = ()

    def __init__(
        self, kernels: Kernels, program: NativeProgram, layout: PageLayout, compute_id: str
    ) -> None:
        self.compute_id = compute_id
        self.is_finite = layout.is_finite
        self._kernels = kernels
        self._program = program
        self.kernels = f"native {kernels.variant}"
        self.mover = kernels.make_mover()
        self.found = program.found
        """See `compute.Compute`."""

    def run(self, inputs: StepInputs) -> np.ndarray:
        """See `compute.Compute`."""
        try:
            return self._program.run(inputs)
        except NativeError as error:
            raise RuntimeError(str(error)) from error

    @property
    def threads(self) -> int:
        """See `compute.Compute`."""
        return self._kernels.team.threads

    def set_threads(self, threads: int) -> None:
        """See `compute.Compute`."""
        self._kernels.team.resize(threads)

    def close(self) -> None:
        """Free the weights and stop the threads. Idempotent."""
        self._program.close()
        self._kernels.close()
