"""What the engine is doing, at the end of its last step.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.model_info import ModelInfo
from engine.options import LoadOptions
from engine.runs import Holding, ParkUsage, PoolUsage, Run, StepCount


class EngineState(Enum):
    """The engine as a whole."""

    NO_MODEL = "no_model"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSnapshot:
    """The engine at the end of its last step."""

    state: EngineState = EngineState.NO_MODEL
    model: ModelInfo | None = None
    options: LoadOptions | None = None
    window_tokens: int = 0
    """Most tokens one request may hold: the smaller of the model's window and the pool."""
    kernels: str = ""
    """What computes the model: torch and its device, or an instruction set of the native kernels."""
    inexact_ops: tuple[str, ...] = ()
    """Ops found not row-invariant on this device; empty means byte-exact concurrency holds."""
    pool: PoolUsage = field(default_factory=PoolUsage)
    waiting: int = 0
    running: int = 0
    parked: int = 0
    parks: ParkUsage = field(default_factory=ParkUsage)
    runs: tuple[Run, ...] = ()
    holdings: tuple[Holding, ...] = ()
    """Who holds which pages of the pool, each page once; what is in use beside them is on its way out or in."""
    saved_ids: tuple[str, ...] = ()
    """Requests of before whose state is on disk: what can be asked with `Request.resumes`."""
    tokens_per_s: float = 0.0
    steps: tuple[StepCount, ...] = ()
