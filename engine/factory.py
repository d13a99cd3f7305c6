"""Where an engine is made. Imported by the composition root only; torch is loaded with a model that needs it."""

from __future__ import annotations

from pathlib import Path

from engine.api import EnginePort, ModelInfo
from engine.formats.checkpoint import inspect_model as _inspect_model


def create_engine() -> EnginePort:
    """Start an engine with no model; its thread runs until `shutdown`."""
    from engine.runtime.engine import Engine

    return Engine()


def inspect_model(path: Path, name: str) -> ModelInfo:
    """Facts about a model's files, without loading weights or torch. Raises ModelError."""
    return _inspect_model(path, name)
