"""The engine as the window shows it: its state, its model, how far loading is. Plain state on the GUI thread; no Qt."""

from __future__ import annotations

from dataclasses import dataclass

from engine.api import EngineState, ModelInfo
from engine.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """What `ModelService.status` holds. `progress` is 0 to 1 while LOADING; `error` is set when FAILED."""

    state: EngineState = EngineState.NO_MODEL
    model: ModelInfo | None = None
    progress: float = 0.0
    error: EngineError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    """How far the fetch of a model is. `total_bytes` is what the download has to reach."""

    name: str
    done_bytes: int
    total_bytes: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else 0.0
