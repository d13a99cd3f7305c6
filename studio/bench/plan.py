"""What `layby bench` is asked to measure. Plain values; loads neither torch nor Qt."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from engine.api import LoadOptions


class Part(Enum):
    """What can be measured by itself."""

    MACHINE = "machine"
    STEPS = "steps"
    PARKS = "parks"
    START = "start"
    SCENARIOS = "scenarios"
    BUSY = "busy"
    AGAINST = "against"
    """Only beside a llama-server."""
    GAPS = "gaps"
    PERPLEXITY = "perplexity"
    """Needs memory for the model in float32."""


PART_NAMES = tuple(part.value for part in Part)
DEFAULT_PARTS = tuple(p for p in Part if p not in (Part.GAPS, Part.PERPLEXITY))


@dataclass(frozen=True, slots=True)
class ModelWish:
    """A model by name or path, and values of `Part` to be measured of it; none: as of all others."""

    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchWishes:
    """What the command line asked for."""

    models: tuple[ModelWish, ...] = ()
    """None: the one of the settings."""
    parts: tuple[str, ...] = ()
    """Values of `Part`; none: the default ones, or with `is_calibrating` those that a calibration needs."""
    rounds: int = 3
    is_quick: bool = False
    is_calibrating: bool = False
    as_json: bool = False
    as_markdown: bool = False
    llama_server: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLoad:
    """Chats that are sent to a server, all with prompts and replies of one length."""

    num_chats: int = 4
    prompt_words: int = 340
    """With most vocabularies as many tokens, or a few more."""
    reply_tokens: int = 700
    tight_pool_tokens: int = 2048
    """A pool that they overflow."""
    wide_pool_tokens: int = 8192
    """A pool in which they fit."""

    def one_token(self) -> ChatLoad:
        """One chat with the same prompt and a reply that has hardly begun."""
        return replace(self, num_chats=1, reply_tokens=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Of chats that are compared with another program's, or beside another program."""

    long_prompt_words: int = 512
    short_prompt_words: int = 300
    lone_reply_tokens: int = 128
    busy_reply_tokens: int = 96
    begun_tokens: int = 32
    """A chat that has got so many is well under way."""


QUICK_LOAD = ChatLoad(prompt_words=20, reply_tokens=120, tight_pool_tokens=416)
QUICK_LENGTHS = Lengths(
    long_prompt_words=40,
    short_prompt_words=20,
    lone_reply_tokens=16,
    busy_reply_tokens=16,
    begun_tokens=8,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """A model, how it is loaded, and how thoroughly it is measured."""

    model: Path
    model_name: str
    model_bytes: int
    storage: str
    """How most of its weights are stored, as "Q4_1"."""
    window_tokens: int
    """Of the model itself."""
    options: LoadOptions
    server_flags: tuple[str, ...] = ()
    """Flags of `layby serve` beside the model, the pool and the seats."""
    api_key: str | None = None
    parts: tuple[Part, ...] = DEFAULT_PARTS
    rounds: int = 3
    """How often each scenario and each comparison is repeated."""
    is_quick: bool = False
    llama_server: Path | None = None
    """A llama-server to compare with; None: none."""
    load: ChatLoad = field(default_factory=ChatLoad)
    lengths: Lengths = field(default_factory=Lengths)
