"""The engine's model and a running fetch as the window shows them. Frozen values, no Qt."""

from __future__ import annotations

from dataclasses import dataclass

from engine.api import EngineState, ModelInfo
from engine.errors import EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """What `ModelService.status` holds."""

    state: EngineState = EngineState.NO_MODEL
    model: ModelInfo | None = None
    """The model that is loaded, or being loaded while LOADING."""
    progress: float = 0.0
    """0 to 1 while LOADING."""
    error: EngineError | None = None
    """Why, when FAILED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchProgress:
    """How far the fetch of a model is. `total_bytes` is the model's size, whatever the download's."""

    name: str
    done_bytes: int
    total_bytes: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else 0.0
