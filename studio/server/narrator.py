"""What a stream says: engine events -> its protocol's events and comments, as bytes. Server thread; no sockets.

Notices of parking are comments, which legal readers skip; a client that takes every line for JSON asks for empty deltas
instead, and one whose protocol has no comments gets them unasked. Notices of a choice strictly alternate, and those of
several choices carry the index of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from engine.api import (
    Failed,
    Finished,
    Parked,
    PromptProgress,
    RequestEvent,
    Restored,
    Started,
    TokenDelta,
)
from engine.errors import EngineError, InvalidRequest
from studio.server.errors import ApiError
from studio.server.framing import Json
from studio.server.generation import Generation, check_end

KEEPALIVE = b":\n\n"
PARKED_KEEPALIVE = b": preempt-keepalive\n\n"
_KEEPALIVES_PER_PING = 16
"""Every so many comments are an event too, where the protocol's clients count on events: about every 24 s."""

HEARTBEAT_HEADER = "x-layby-heartbeat"


class Heartbeat(Enum):
    """How a stream shows that it is alive; the values are those of HEARTBEAT_HEADER."""

    COMMENT = "comment"
    DELTA = "delta"


def read_heartbeat(value: str | None) -> Heartbeat:
    """What the client asked for; comments unless it did. Raises InvalidRequest for an unknown value."""
    if value is None:
        return Heartbeat.COMMENT
    for style in Heartbeat:
        if value.strip().lower() == style.value:
            return style
    allowed = " or ".join(style.value for style in Heartbeat)
    raise InvalidRequest(
        f"the header {HEARTBEAT_HEADER} is {value[:40]!r}; give {allowed}, or leave it out",
        param=HEARTBEAT_HEADER,
    )


class Narrator:
    """Knows which choices have begun, are parked or have ended, and puts that into words."""

    def __init__(self, generation: Generation, heartbeat: Heartbeat) -> None:
        self._shape = generation.shape
        self._framing = generation.shape.framing
        self._generation = generation
        self._comments = heartbeat is Heartbeat.COMMENT and self._framing.has_comments
        self._num_choices = len(generation.requests)
        self._started: dict[int, Started] = {}
        self._begun: set[int] = set()
        self._parked: set[int] = set()
        self._untold_ids: dict[int, tuple[int, ...]] = {}
        """Of tokens whose text is undecided; they are told with it."""
        self._quiet = set(range(self._num_choices))
        self._ends: dict[int, Finished] = {}
        self._num_keepalives = 0

    @property
    def is_done(self) -> bool:
        return len(self._ends) == self._num_choices

    @property
    def is_waited_for(self) -> bool:
        """Whether a choice may have nothing to say for long: it stands in line, is being read, or is parked."""
        return bool(self._quiet)

    def tell(self, index: int, event: RequestEvent) -> bytes:
        """What to write, with the last choice the end of the stream; nothing for events that clients do not hear of.

        Raises the error of a choice that failed, ApiError for one that was stopped from elsewhere.
        """
        match event:
            case TokenDelta():
                self._quiet.discard(index)
                if event.text or event.logprobs or event.reasoning or event.tool_calls:
                    if held := self._untold_ids.pop(index, ()):
                        event = replace(event, token_ids=held + event.token_ids)
                    return self._begin(index) + self._encode(self._shape.delta(index, event))
                self._untold_ids[index] = self._untold_ids.get(index, ()) + event.token_ids
            case Started():
                self._started[index] = event
            case PromptProgress():
                self._quiet.add(index)  # also a reply, which a context shift has to read again
            case Parked() if index not in self._parked:
                self._parked.add(index)
                self._quiet.add(index)
                return self._notice(index, "preempted")
            case Restored() if index in self._parked:
                self._parked.discard(index)
                again = ("recomputed",) if event.recomputed_tokens else ()
                return self._notice(index, "resumed", *again)
            case Finished():
                check_end(event)
                return self._finish(index, event)
            case Failed():
                raise event.error
        return b""

    def keepalive(self) -> bytes:
        """What breaks a silence."""
        if not self._comments:
            return self._sign_of_life()
        self._num_keepalives += 1
        comment = PARKED_KEEPALIVE if self._parked else KEEPALIVE
        if self._framing.pings and self._num_keepalives % _KEEPALIVES_PER_PING == 0:
            return comment + self._sign_of_life()
        return comment

    def failure(self, error: ApiError | EngineError) -> bytes:
        """The end of a stream that had begun."""
        return self._encode(self._shape.failure(error))

    def _finish(self, index: int, event: Finished) -> bytes:
        self._parked.discard(index)
        self._quiet.discard(index)
        self._ends[index] = event
        end = None
        if self.is_done:
            end = self._generation.end([self._ends[each] for each in range(self._num_choices)])
        closing = self._begin(index) + self._encode(self._shape.closing(index, event, end))
        return closing if end is None else closing + self._framing.trailer

    def _begin(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        return self._encode(self._shape.opening(index, self._started.get(index)))

    def _notice(self, index: int, *words: str) -> bytes:
        if not self._comments:
            return self._empty_delta(index)
        mark = f" {index}" if self._num_choices > 1 else ""
        return "".join(f": {word}{mark}\n\n" for word in words).encode()

    def _sign_of_life(self) -> bytes:
        alive = set(range(self._num_choices)) - self._ends.keys()
        return self._empty_delta(min(self._quiet or alive))

    def _empty_delta(self, index: int) -> bytes:
        return self._begin(index) + self._encode(self._shape.sign_of_life(index))

    def _encode(self, events: Iterable[Json]) -> bytes:
        return b"".join(map(self._framing.encode, events))
