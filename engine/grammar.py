"""What a reply may be made to match.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class GrammarKind(Enum):
    """The language that a grammar is written in."""

    JSON_SCHEMA = "json_schema"
    REGEX = "regex"
    LARK = "lark"
    GBNF = "gbnf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A rule for the whole reply, up to its end."""

    kind: GrammarKind
    source: str
    """The grammar; of a JSON schema its JSON text, `{}` for any JSON value."""
