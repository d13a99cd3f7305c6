"""Steps on torch, float32 on dequantised weights: for GPUs, and for CPUs without native kernels. Engine thread.

A page of its pool holds [layers, 2, page_tokens, kv_heads, `KvStorage.width`]: keys (after rotation), then values,
layer by layer. All that is ever in a page is finite: it starts as zeros and only finite numbers are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from engine.api import Device, KvType
from engine.core.config import PAGE_TOKENS
from engine.runtime.compute import Limits, OnProgress, RecordedModel
from engine.runtime.weight_reader import WeightReader
from kernels.api import StepInputs
from kernels.kv_layout import KvType as PageNumbers
from kernels.page_copy import NumpyMover
from kernels.torch_backend import TorchExecutable, compile_program, packing_bytes, weight_bytes
from kernels.torch_kv import KvStorage
from kernels.torch_self_test import find_inexact_ops
from kernels.torch_step import Limits as TorchLimits

if TYPE_CHECKING:
    from engine.runtime.kv_arena import Pages

_TYPES = {
    KvType.F16: PageNumbers.F16,
    KvType.F32: PageNumbers.F32,
    KvType.Q8_0: PageNumbers.Q8_0,
}


class TorchBackend:
    """Implements `compute.Backend`."""

    def __init__(self, model: RecordedModel, kv_type: KvType, device: Device, threads: int) -> None:
        torch.set_num_threads(threads)
        spec = model.spec
        self.device = device
        self._model = model
        self._storage = KvStorage(_TYPES[kv_type], spec.head_dim)
        width = self._storage.width
        self._page_shape = (spec.layers, 2, PAGE_TOKENS, spec.kv_heads, width)
        self.page_bytes = int(np.prod(self._page_shape)) * self._storage.dtype.itemsize
        self.weight_bytes = weight_bytes(model.program) + packing_bytes(model.program)

    def compile(self, pages: Pages, limits: Limits, on_progress: OnProgress) -> TorchCompute:
        """See `compute.Backend`."""
        model = self._model
        device = torch.device(self.device.value)
        weights = WeightReader(model.checkpoint, model.sources, device, on_progress)
        memory = torch.from_numpy(pages) if isinstance(pages, np.ndarray) else pages
        pool = memory.view(self._storage.dtype).view(len(pages), *self._page_shape)
        sizes = TorchLimits(
            max_rows=limits.rows, max_outputs=limits.outputs, max_positions=limits.positions
        )
        executable = compile_program(model.program, weights, pool, sizes)
        return TorchCompute(executable, self.device, self._compute_id())

    def _compute_id(self) -> str:
        if self.device is Device.CUDA:
            chip = torch.cuda.get_device_name()
        else:
            chip = torch.backends.cpu.get_cpu_capability()
        return f"torch {torch.__version__} {self.device.value} {chip} {self._storage.kv_type.value}"


class TorchCompute:
    """Implements `compute.Compute`."""

    def __init__(self, executable: TorchExecutable, device: Device, compute_id: str) -> None:
        self.kernels = f"torch {device.value}"
        self.compute_id = compute_id
        self._device = device
        self._executable: TorchExecutable | None = executable
        self.is_finite = executable.pool.storage.is_finite
        self.inexact_ops = find_inexact_ops(executable)
        self.mover = NumpyMover()

    def run(self, inputs: StepInputs) -> np.ndarray:
        """See `compute.Compute`."""
        assert self._executable is not None
        return self._executable.run(inputs).cpu().numpy()

    @property
    def threads(self) -> int:
        """See `compute.Compute`."""
        return torch.get_num_threads() if self._device is Device.CPU else 0

    def found(self) -> tuple[()]:
        """Nothing is: samplers read whole rows."""
        return ()

    def set_threads(self, threads: int) -> None:
        """See `compute.Compute`."""
        torch.set_num_threads(threads)

    def close(self) -> None:
        """Free the weights. Idempotent."""
        self._executable = None
