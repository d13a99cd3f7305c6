"""What a model runner asks of a back end: how much memory, then to compile, then to run steps. Engine thread.

Two are there: the native kernels (`native_compute`), taken on the CPU where they were built, and torch
(`torch_compute`), for every other device and wherever there was no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from engine.api import Device
from engine.formats.base import Checkpoint
from engine.models.spec import ModelSpec
from engine.models.weight_map import WeightSource
from kernels.api import Program, StepInputs
from kernels.page_copy import PageMover
from kernels.wishes import Found

if TYPE_CHECKING:
    from engine.runtime.kv_arena import Pages

OnProgress = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A model's step as recorded, and where its weights lie."""

    spec: ModelSpec
    program: Program
    sources: Mapping[str, WeightSource]
    checkpoint: Checkpoint


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest step that will be asked for."""

    rows: int
    outputs: int
    positions: int
    """Positions are below this."""


class Compute(Protocol):
    """A compiled model."""

    @property
    def kernels(self) -> str:
        """What computes, for people: torch and its device, or an instruction set of the native kernels."""

    @property
    def compute_id(self) -> str:
        """Names all that a page's content depends on besides weights and tokens: kernels, layout, kind of numbers."""

    @property
    def inexact_ops(self) -> tuple[str, ...]:
        """Ops found not row-invariant on this machine; empty where byte-exact concurrency holds."""

    @property
    def is_finite(self) -> Callable[[NDArray[np.uint8]], bool]:
        """Tells of a page's bytes whether all numbers in them are finite, as all are that were computed.

        For any thread, and holds no memory of the model.
        """

    @property
    def mover(self) -> PageMover:
        """Copies pages within host memory, on the threads of steps where these wait for it."""

    def run(self, inputs: StepInputs) -> np.ndarray:
        """Logits [outputs, vocabulary], float32 on the host, valid until the next call. RuntimeError on failure."""

    @property
    def threads(self) -> int:
        """How many of the CPU's threads compute a step; 0 where another processor does."""

    def found(self) -> Sequence[Found]:
        """What `StepInputs.wishes` wanted of each row of the latest logits; empty where the back end finds nothing."""

    def set_threads(self, threads: int) -> None:
        """Change how many threads compute a step, between two steps; no bit of any result depends on it."""

    def close(self) -> None:
        """Free the weights. Idempotent."""


class Backend(Protocol):
    """A way to compute one recorded model."""

    @property
    def device(self) -> Device: ...

    @property
    def page_bytes(self) -> int:
        """Bytes of a page of the pool; to everybody else a page is opaque."""

    @property
    def weight_bytes(self) -> int:
        """Memory that the weights will take."""

    def compile(self, pages: Pages, limits: Limits, on_progress: OnProgress) -> Compute:
        """Read the weights and make the step ready to run on `pages` [pages, page_bytes], uint8.

        Raises CorruptModel, MemoryError, RuntimeError when memory runs out, and what `on_progress` raises.
        """
