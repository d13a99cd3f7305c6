"""How a chat is answered: system prompt, sampling, limits; and presets, which are such settings with a name.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.api import SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """What the next reply of a chat is asked with. The defaults are what a new chat has."""

    system_prompt: str = ""
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int | None = None
    """Most tokens of a reply; None: as many as the context has room for."""
    stop: tuple[str, ...] = ()
    """A reply ends before one of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Settings that were given a name."""

    preset_id: int
    name: str
    settings: ChatSettings
