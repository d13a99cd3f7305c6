"""Where an engine is made. Imported by the composition root only; what is large is loaded when it is asked for, torch
with a model that needs it."""

from __future__ import annotations

from pathlib import Path

from engine.api import EnginePort, ModelInfo
from engine.late_engine import LateEngine


def create_engine() -> EnginePort:
    """Start an engine with no model; its thread runs until `shutdown`."""
    from engine.runtime.engine import Engine

    return Engine()


def create_late_engine() -> LateEngine:
    """The same for somebody who has to be quick first: it starts when it is told to."""
    return LateEngine(create_engine)


def inspect_model(path: Path, name: str) -> ModelInfo:
    """Facts about a model's files, without loading weights or torch. Raises ModelError."""
    from engine.formats import checkpoint

    return checkpoint.inspect_model(path, name)
