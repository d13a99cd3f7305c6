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
    """A rule for the whole of what is generated, up to the end of the reply.

    The model's end-of-reply tokens may come where the grammar is complete, and nothing else where nothing more can
    follow. A reply that `max_tokens` or a stop string cuts short is the beginning of what matches. Control tokens
    appear in Lark and GBNF as `<|name|>` or `<[id]>`, and no other text stands for one.
    """

    kind: GrammarKind
    source: str
    """The grammar; of a JSON schema its JSON text, `{}` for any JSON value."""
    param: str = "grammar"
    """What errors call it: the field of the client's request that it came in."""
