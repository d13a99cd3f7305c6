"""What a kind of reply must be able to say, as a stream and in one piece; each protocol has a class that can.

Plain dicts, one per event: a checked model per token would cost more than the rest of the server. Server thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.api import Finished, Started, TokenDelta, Usage
from engine.errors import EngineError
from studio.server.errors import ApiError
from studio.server.framing import Framing, Json
from studio.server.reply_parts import ReplyParts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnd:
    """What a reply that has ended took; the choices of one prompt count its tokens once."""

    usages: tuple[Usage, ...]
    """One per choice, in order of index."""
    choices_per_prompt: int = 1
    tells_parks: bool = False
    """Whether the reply has a record of its parks: only where the server can park."""

    @property
    def prompt_tokens(self) -> int:
        return sum(usage.prompt_tokens for usage in self._prompts)

    @property
    def cached_tokens(self) -> int:
        """Those of the prompts that were not read again."""
        return sum(usage.cached_tokens for usage in self._prompts)

    @property
    def completion_tokens(self) -> int:
        return sum(usage.completion_tokens for usage in self.usages)

    @property
    def park_fields(self) -> Json:
        """How often the choices were parked, and how often the state was dropped, all together."""
        if not self.tells_parks:
            return {}
        parks = sum(usage.num_parks for usage in self.usages)
        recomputes = sum(usage.num_recomputes for usage in self.usages)
        return {"preempt": {"parks": parks, "recomputes": recomputes}}

    @property
    def _prompts(self) -> Sequence[Usage]:
        return self.usages[:: self.choices_per_prompt]


class ReplyShape(Protocol):
    """How one kind of reply looks on the wire; an object for each reply. Methods return events in their order."""

    @property
    def framing(self) -> Framing:
        """What stands around the events of a stream."""

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        """Before anything else of a choice. `started`: its prompt is being read, or has been."""

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        """Something new of a choice."""

    def sign_of_life(self, index: int) -> Sequence[Json]:
        """Nothing new, for clients that take no comment for a sign of life."""

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        """The end of a choice, and with `end` that of the reply. Never of one that was aborted."""

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        """The end of a stream that had begun."""

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        """The reply in one piece."""
