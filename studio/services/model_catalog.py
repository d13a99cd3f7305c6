"""Reads the catalogue: the models that can be fetched, as shipped in `resources`. Any thread."""

from __future__ import annotations

import json
from importlib import resources

from studio.models.model_library import CatalogEntry


def read_catalog() -> tuple[CatalogEntry, ...]:
    """Every model that can be fetched, in the order they are offered."""
    text = resources.files("resources").joinpath("model_catalog.json").read_text("utf-8")
    return tuple(CatalogEntry(**entry) for entry in json.loads(text))


def read_requirements(entry: CatalogEntry) -> str:
    """The pinned requirement of a catalogue entry, as pip reads it."""
    return resources.files("resources").joinpath(entry.requirements).read_text("utf-8")
