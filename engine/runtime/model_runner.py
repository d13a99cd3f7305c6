"""A loaded model: weights, pool and the compiled step. Engine thread.

`ModelRunner.load` reads and checks everything; `execute` computes one step of the scheduler and hands over the logits
as numpy, so that sampling needs no tensor library. On the native kernels torch is never imported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from engine.api import Device, LoadOptions
from engine.core.config import PAGE_TOKENS, ParkConfig
from engine.core.types import StepRow
from engine.errors import DeviceFailure, InvalidRequest, ModelUnavailable, NotEnoughMemory
from engine.formats.base import Checkpoint
from engine.models.registry import find_architecture
from engine.models.spec import ModelSpec, parse_spec
from engine.models.weight_map import map_weights
from engine.runtime.compute import Backend, Compute, Limits, RecordedModel
from engine.runtime.device import (
    GIB,
    choose_device,
    default_threads,
    free_bytes,
    pool_pages,
    return_freed_memory,
    usable_cores,
)
from engine.runtime.kv_arena import Arena, KvArena
from engine.runtime.native_compute import NativeBackend
from engine.runtime.park_plan import most_budget_bytes, plan_parks
from engine.runtime.step_inputs import make_step_inputs
from kernels.cpu.library import NativeUnavailable, load_library
from kernels.wishes import Found, Wish

if TYPE_CHECKING:
    from engine.runtime.kv_arena import Pages

_LOG = logging.getLogger(__name__)
AUTO = "auto"
TORCH = "torch"
NATIVE = "native"
"""The values of `cpu_variant` that name no instruction set."""
Wrapped = TypeVar("Wrapped", bound=Compute)
_RESERVE_BYTES = 256 << 20
"""Memory left to the system and to the step's own buffers."""
_DEVICE_RESERVE_BYTES = 512 << 20
"""The same on a device: larger waves of attention, workspaces of its libraries, staging of parks."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """How much memory becomes the pool, and how its requests are parked."""

    num_pages: int
    park: ParkConfig
    most_budget_bytes: int
    """What parked requests may hold at most, limits asked for later included."""


class ModelRunner:
    """Computes steps of one model. Made by `load`; `close` frees weights and pool."""

    def __init__(
        self,
        spec: ModelSpec,
        plan: PoolPlan,
        arena: Arena,
        compute: Compute,
        *,
        held_bytes: int,
    ) -> None:
        self.spec = spec
        self.plan = plan
        self.num_pages = plan.num_pages
        self.window_tokens = min(spec.context_tokens, self.num_pages * PAGE_TOKENS)
        """Most tokens one sequence may hold."""
        self.page_bytes = plan.park.page_bytes
        self.compute_id = compute.compute_id
        """What the content of pages depends on besides the weights and the tokens."""
        self.inexact_ops = compute.inexact_ops
        """Ops found not row-invariant on this machine; empty where byte-exact concurrency holds."""
        self.is_finite = compute.is_finite
        """Whether a page's bytes hold only finite numbers; any thread."""
        self.kernels = compute.kernels
        """What computes: torch and its device, or an instruction set of the native kernels."""
        self.mover = compute.mover
        """Copies pages where the pool is host memory."""
        self.held_bytes = held_bytes
        """Memory of its device that weights and pool were given; less of it may have been touched."""
        self._compute: Compute | None = compute
        self._arena: Arena | None = arena

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
        backend, spec = _prepare(checkpoint, options)
        plan = plan_memory(spec, options, backend)
        most_rows = max(options.batch_tokens, options.parallel)
        limits = Limits(
            rows=most_rows,
            outputs=most_rows if spec.gives_embeddings else options.parallel,
            positions=min(spec.context_tokens, plan.num_pages * PAGE_TOKENS),
        )
        try:
            num_pages = max(plan.num_pages, plan.park.arena_pages)
            arena = _make_arena(num_pages, backend)
            compute = backend.compile(arena.pages, limits, on_progress)
            held_bytes = backend.weight_bytes + num_pages * backend.page_bytes
            return cls(spec, plan, arena, compute, held_bytes=held_bytes)
        except (MemoryError, OSError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            raise NotEnoughMemory(
                f"memory ran out while the model was loaded ({error}); close other programs or take a smaller model"
            ) from error

    @staticmethod
    def check(checkpoint: Checkpoint, options: LoadOptions, freed_bytes: int) -> None:
        """Raise what `load` would, as far as that is known without reading weights or making the pool.

        `freed_bytes` of the device's memory will be free besides what is.
        """
        backend, spec = _prepare(checkpoint, options)
        plan_memory(spec, options, backend, freed_bytes)

    def execute(self, rows: Sequence[StepRow], wishes: Sequence[Wish] = ()) -> np.ndarray:
        """Compute one step; keys and values of its tokens are in the pool afterwards.

        Returns the logits [rows that sample, vocabulary], float32 on the host, in the order of `rows`; valid until the
        next call. `wishes`: what is wanted of each besides, see `found`. Raises DeviceFailure when a kernel fails,
        ModelUnavailable after `close`.
        """
        if self._compute is None:
            raise ModelUnavailable("the model was unloaded")
        try:
            return self._compute.run(make_step_inputs(rows, wishes))
        except RuntimeError as error:
            raise DeviceFailure(f"the step failed: {error}") from error

    def found(self) -> Sequence[Found]:
        """What was wanted of each row of the latest logits; empty, or None for a row, where it cannot be told."""
        return self._compute.found() if self._compute is not None else ()

    @property
    def takes_every_core(self) -> bool:
        """Whether a step leaves no core to whoever passes its results on."""
        return self._compute is not None and self._compute.threads >= usable_cores()

    def set_threads(self, threads: int) -> None:
        """Change how many threads compute a step. Raises ModelUnavailable after `close`."""
        if self._compute is None:
            raise ModelUnavailable("the model was unloaded")
        self._compute.set_threads(threads)

    def wrap_compute(self, wrap: Callable[[Compute], Wrapped]) -> Wrapped:
        """Let what `wrap` makes of the compiled model run the steps from now on, so that they can be measured.

        Raises ModelUnavailable after `close`.
        """
        if self._compute is None:
            raise ModelUnavailable("the model was unloaded")
        wrapped = wrap(self._compute)
        self._compute = wrapped
        return wrapped

    @property
    def pool(self) -> Pages:
        """All pages, one after the other in the first dimension. Raises ModelUnavailable after `close`."""
        return self._open_arena().pages

    def commit(self, rows: Iterable[StepRow]) -> None:
        """See to it that there is memory for what `rows` write. Raises MemoryError when the system has none left."""
        pages = (page for row in rows for page in _pages_written(row))
        self._open_arena().commit(pages, lambda: free_bytes(Device.CPU))

    def view_pages(self, pages: Sequence[int]) -> list[np.ndarray]:
        """The bytes of each page: where they lie if that is host memory, else copies."""
        return self._open_arena().view(pages)

    def fill_pages(self, pages: Sequence[int], content: np.ndarray) -> None:
        """Write bytes [pages, page_bytes] into pages. Raises MemoryError when the system has no memory left."""
        arena = self._open_arena()
        arena.commit(pages, lambda: free_bytes(Device.CPU))
        arena.fill(pages, content)

    def give_back(self, pages: Iterable[int]) -> None:
        """Return the memory of pages whose content is worthless to the system."""
        self._open_arena().give_back(pages)

    def _open_arena(self) -> Arena:
        if self._arena is None:
            raise ModelUnavailable("the model was unloaded")
        return self._arena

    def close(self) -> None:
        """Free weights and pool. Idempotent."""
        if self._compute is not None and self._arena is not None:
            self._compute.close()
            self._arena.close()
            self._compute = self._arena = None
            return_freed_memory()


def choose_backend(model: RecordedModel, options: LoadOptions, device: Device) -> Backend:
    """The native kernels where the CPU computes and they are there, else torch.

    Raises InvalidRequest for native kernels that are asked for and not there or do not run here.
    """
    threads, variant = options.threads or default_threads(), options.cpu_variant
    if device is Device.CPU and variant != TORCH:
        try:
            library = load_library(None if variant in (AUTO, NATIVE) else variant)
            return NativeBackend(model, options.kv_type, library, threads)
        except NativeUnavailable as error:
            if variant != AUTO:
                message = f"cpu_variant is {variant}: {error}"
                raise InvalidRequest(message, param="cpu_variant") from error
            _LOG.warning("torch computes, several times slower than Layby's own kernels: %s", error)
    # Here and not above: it imports torch.
    from engine.runtime.torch_compute import TorchBackend

    return TorchBackend(model, options.kv_type, device, threads)


def _prepare(checkpoint: Checkpoint, options: LoadOptions) -> tuple[Backend, ModelSpec]:
    """What will compute the model. Reads no weights."""
    device = choose_device(options.device)
    architecture = find_architecture(checkpoint.architecture)
    spec = parse_spec(checkpoint)
    program = architecture.record(spec)
    sources = map_weights(program, architecture, spec, checkpoint)
    model = RecordedModel(spec, program, sources, checkpoint)
    return choose_backend(model, options, device), spec


def plan_memory(
    spec: ModelSpec, options: LoadOptions, backend: Backend, freed_bytes: int = 0
) -> PoolPlan:
    """What becomes of the memory that is free, and of `freed_bytes` of the device's that will be.

    Raises NotEnoughMemory when weights or pool do not fit.
    """
    device, page_bytes = backend.device, backend.page_bytes
    free = free_bytes(device) + freed_bytes
    reserve = _RESERVE_BYTES if device is Device.CPU else _DEVICE_RESERVE_BYTES
    needed = backend.weight_bytes + reserve
    if needed + page_bytes > free:
        raise NotEnoughMemory(
            f"the model needs {needed / GIB:,.2f} GB, {free / GIB:,.2f} GB are free; close other programs or take a "
            "smaller model"
        )
    num_pages = pool_pages(options, spec, page_bytes, free - needed)
    if device is Device.CPU:
        left = free - needed - num_pages * page_bytes
    else:
        left = free_bytes(Device.CPU)
    park = plan_parks(options, device, page_bytes=page_bytes, num_pages=num_pages, free=left)
    return PoolPlan(num_pages, park, most_budget_bytes(left))


def _pages_written(row: StepRow) -> list[int]:
    first, last = row.start // PAGE_TOKENS, (row.start + row.count - 1) // PAGE_TOKENS
    return row.seq.page_table[first : last + 1]


def _make_arena(num_pages: int, backend: Backend) -> Arena:
    """Raises MemoryError, OSError or RuntimeError when there is not enough memory."""
    if backend.device is Device.CPU:
        return KvArena.allocate(num_pages, backend.page_bytes)
    # Here and not above: it imports torch.
    from engine.runtime.torch_device import DeviceArena

    return DeviceArena(num_pages, backend.page_bytes, backend.device)


def _is_out_of_memory(error: Exception) -> bool:
    """torch has no error of its own for the CPU's memory; all of its errors about memory say this word."""
    return isinstance(error, MemoryError) or "allocate" in str(error)
