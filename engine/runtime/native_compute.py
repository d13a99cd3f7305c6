"""Steps on the native CPU kernels: quantised weights as the file has them, one native call a step. Engine thread."""

from __future__ import annotations

import numpy as np
import torch

from engine.api import KvType
from engine.errors import UnsupportedModel
from engine.runtime.compute import Limits, OnProgress, RecordedModel
from engine.runtime.stored_weights import StoredWeights
from kernels.api import StepInputs
from kernels.cpu.library import NativeError, NativeLibrary
from kernels.kv_layout import KvPool, page_layout
from kernels.kv_layout import KvType as PageNumbers
from kernels.native_backend import NativeBackend as Kernels
from kernels.native_backend import NativeProgram, StepLimits

_TYPES = {KvType.F16: PageNumbers.F16, KvType.F32: PageNumbers.F32}
_PACKING = 1.04
"""Packed weights take up to this much of the file's: some storages' scales are widened to 8 bits."""


class NativeBackend:
    """Implements `compute.Backend`."""

    device = torch.device("cpu")

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

    def compile(
        self, pages: torch.Tensor, limits: Limits, on_progress: OnProgress
    ) -> NativeCompute:
        """See `compute.Backend`. Raises UnsupportedModel too, for shapes that no native kernel takes."""
        model = self._model
        kernels = Kernels(self._library, self._threads)
        weights = StoredWeights(model.checkpoint, model.sources, on_progress)
        pool = KvPool(self._layout, pages.numpy())
        try:
            sizes = StepLimits(limits.rows, limits.outputs)
            return NativeCompute(kernels, kernels.compile(model.program, weights, pool, sizes))
        except NativeError as error:
            kernels.close()
            raise UnsupportedModel(
                f"the native kernels do not take this model ({error}); load it with --cpu-variant torch"
            ) from error
        except BaseException:
            kernels.close()
            raise


class NativeCompute:
    """Implements `compute.Compute`. Every native kernel is row-invariant by construction, which tests prove."""

    inexact_ops: tuple[str, ...] = ()

    def __init__(self, kernels: Kernels, program: NativeProgram) -> None:
        self._kernels = kernels
        self._program = program
        self.kernels = f"native {kernels.variant}"

    def run(self, inputs: StepInputs) -> np.ndarray:
        """See `compute.Compute`."""
        try:
            return self._program.run(inputs)
        except NativeError as error:
            raise RuntimeError(str(error)) from error

    def set_threads(self, threads: int) -> None:
        """See `compute.Compute`."""
        self._kernels.team.resize(threads)

    def close(self) -> None:
        """Free the weights and stop the threads. Idempotent."""
        self._program.close()
        self._kernels.close()
