"""A loaded model: weights, pool and the compiled step. Engine thread, the only one that calls torch.

`ModelRunner.load` reads and checks everything; `execute` computes one step of the scheduler and hands over the logits
as numpy, so that sampling needs no tensor library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from engine.api import LoadOptions
from engine.core.config import PAGE_TOKENS
from engine.core.types import StepRow
from engine.errors import DeviceFailure, ModelUnavailable, NotEnoughMemory
from engine.formats.base import Checkpoint
from engine.models.registry import find_architecture
from engine.models.spec import ModelSpec, parse_spec
from engine.models.weight_map import map_weights
from engine.runtime.device import (
    GIB,
    choose_device,
    default_threads,
    free_bytes,
    pool_pages,
    return_freed_memory,
)
from engine.runtime.kv_tensors import allocate_pool, bytes_per_page
from engine.runtime.step_inputs import make_step_inputs
from engine.runtime.weight_reader import WeightReader
from kernels.api import Program
from kernels.torch_backend import (
    TorchExecutable,
    compile_program,
    packing_bytes,
    weight_bytes,
)
from kernels.torch_self_test import find_inexact_ops
from kernels.torch_step import Limits

_RESERVE_BYTES = 256 << 20
"""Memory left to the system and to the step's own buffers."""


class ModelRunner:
    """Computes steps of one model. Made by `load`; `close` frees weights and pool."""

    def __init__(self, spec: ModelSpec, options: LoadOptions, executable: TorchExecutable) -> None:
        self.spec = spec
        self.num_pages: int = executable.kv_pool.shape[0]
        self.window_tokens = min(spec.context_tokens, self.num_pages * PAGE_TOKENS)
        """Most tokens one sequence may hold."""
        self.page_bytes = bytes_per_page(spec, options.kv_type)
        self.inexact_ops = find_inexact_ops(executable)
        """Ops found not row-invariant on this machine; empty where byte-exact concurrency holds."""
        self._executable: TorchExecutable | None = executable

    @classmethod
    def load(
        cls,
        checkpoint: Checkpoint,
        options: LoadOptions,
        on_progress: Callable[[float], object],
    ) -> ModelRunner:
        """Read a model. `on_progress` hears the share read, 0 to 1, after each tensor and may raise to cancel.

        Raises UnsupportedModel, CorruptModel, NotEnoughMemory, InvalidRequest (a device that is not there) and what
        `on_progress` raises.
        """
        device = choose_device(options.device)
        torch.set_num_threads(options.threads or default_threads())
        architecture = find_architecture(checkpoint.architecture)
        spec = parse_spec(checkpoint)
        program = architecture.record(spec)
        sources = map_weights(program, architecture, spec, checkpoint)
        num_pages = plan_memory(spec, options, program, free_bytes(device))
        limits = Limits(
            max_rows=max(options.batch_tokens, options.parallel),
            max_outputs=options.parallel,
            max_positions=min(spec.context_tokens, num_pages * PAGE_TOKENS),
        )
        weights = WeightReader(checkpoint, sources, device, on_progress)
        try:
            pool = allocate_pool(spec, num_pages, options.kv_type, device)
            return cls(spec, options, compile_program(program, weights, pool, limits))
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            raise NotEnoughMemory(
                f"memory ran out while the model was loaded ({error}); close other programs or take a smaller model"
            ) from error

    def execute(self, rows: Sequence[StepRow]) -> np.ndarray:
        """Compute one step; keys and values of its tokens are in the pool afterwards.

        Returns the logits [rows that sample, vocabulary], float32 on the host, in the order of `rows`; valid until the
        next call. Raises DeviceFailure when torch fails, ModelUnavailable after `close`.
        """
        if self._executable is None:
            raise ModelUnavailable("the model was unloaded")
        try:
            return self._executable.run(make_step_inputs(rows)).cpu().numpy()
        except RuntimeError as error:
            raise DeviceFailure(f"the step failed in torch: {error}") from error

    def close(self) -> None:
        """Free weights and pool. Idempotent."""
        if self._executable is not None:
            self._executable = None
            return_freed_memory()


def plan_memory(spec: ModelSpec, options: LoadOptions, program: Program, free: int) -> int:
    """Pages of the pool once the weights are in. Raises NotEnoughMemory when they or the pool do not fit."""
    needed = weight_bytes(program) + packing_bytes(program) + _RESERVE_BYTES
    smallest_pool = bytes_per_page(spec, options.kv_type)
    if needed + smallest_pool > free:
        raise NotEnoughMemory(
            f"the model needs {needed / GIB:.2f} GiB (its weights take 4 bytes each here), {free / GIB:.2f} GiB are "
            "free; close other programs or take a smaller model"
        )
    return pool_pages(options, spec, free - needed)


def _is_out_of_memory(error: Exception) -> bool:
    """torch has no error of its own for the CPU's memory."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return "allocate" in str(error)
