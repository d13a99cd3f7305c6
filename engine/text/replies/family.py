"""One way of writing calls, as a row of the table in `families`. Immutable, any thread. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from engine.text.replies.call_shape import CallShape
from engine.text.replies.tagged import ReadReply
from engine.text.replies.thinking import Thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One way of writing calls."""

    name: str
    has: tuple[str, ...]
    """What a template's source has, all of it, whose model writes so."""
    lacks: tuple[str, ...] = ()
    read: ReadReply
    marks: tuple[str, ...]
    """Tags that may be control tokens, to be seen where they are."""
    shape: CallShape | None = None
    """How a call that must be made is written; None: by the generic format."""
    has_own_reasoning: bool = False
    """`read` tells reasoning too."""
    thinking: Thinking | None = None
    """How its models think, where the source of a template does not spell it; None: as the source says."""

    def wrote(self, source: str) -> bool:
        """Whether a template of this source is one of the family's."""
        return all(word in source for word in self.has) and not any(
            word in source for word in self.lacks
        )
