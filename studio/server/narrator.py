"""What a stream says: engine events -> server-sent events and comments, as bytes. Server thread; no sockets, no clock.

Notices of parking are comments, which legal readers skip; a client that takes every line for JSON asks for empty deltas
instead. Notices of a choice strictly alternate, and those of several choices carry the index of theirs.
"""

from __future__ import annotations

import json
from enum import Enum

from engine.api import (
    Failed,
    Finished,
    Parked,
    PromptProgress,
    RequestEvent,
    Restored,
    TokenDelta,
    Usage,
)
from engine.errors import InvalidRequest
from studio.server.generation import Generation
from studio.server.replies import Json, park_record, total_usage

DONE = b"data: [DONE]\n\n"
KEEPALIVE = b":\n\n"
PARKED_KEEPALIVE = b": preempt-keepalive\n\n"

HEARTBEAT_HEADER = "x-layby-heartbeat"

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


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


def encode(data: Json) -> bytes:
    """One event. JSON has no line breaks of its own, so it is always one line."""
    return b"data: " + _JSON.encode(data).encode() + b"\n\n"


class Narrator:
    """Knows which choices have begun, are parked or have ended, and puts that into words."""

    def __init__(self, generation: Generation, heartbeat: Heartbeat) -> None:
        self._shape = generation.shape
        self._generation = generation
        self._heartbeat = heartbeat
        self._has_indices = len(generation.requests) > 1
        self._begun: set[int] = set()
        self._parked: set[int] = set()
        self._quiet = set(range(len(generation.requests)))
        self._usages: dict[int, Usage] = {}

    @property
    def is_done(self) -> bool:
        return len(self._usages) == len(self._generation.requests)

    @property
    def is_waited_for(self) -> bool:
        """Whether a choice may have nothing to say for long: it stands in line, is being read, or is parked."""
        return bool(self._quiet)

    def tell(self, index: int, event: RequestEvent) -> bytes:
        """What to write; nothing for events that clients do not hear of. Raises the error of a choice that failed."""
        match event:
            case TokenDelta():
                self._quiet.discard(index)
                if event.text or event.logprobs:
                    return self._begin(index) + encode(self._shape.delta(index, event))
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
                return self._finish(index, event)
            case Failed():
                raise event.error
        return b""

    def keepalive(self) -> bytes:
        """What breaks a silence."""
        if self._heartbeat is Heartbeat.DELTA:
            alive = set(range(len(self._generation.requests))) - self._usages.keys()
            return self._empty_delta(min(self._quiet or alive))
        return PARKED_KEEPALIVE if self._parked else KEEPALIVE

    def ending(self) -> bytes:
        """What follows the last choice."""
        if not self._generation.include_usage:
            return DONE
        usages = self._all_usages()
        usage = total_usage(usages, self._generation.choices_per_prompt)
        return encode(self._with_parks(self._shape.usage_chunk(usage))) + DONE

    def _finish(self, index: int, event: Finished) -> bytes:
        self._parked.discard(index)
        self._quiet.discard(index)
        self._usages[index] = event.usage
        chunk = self._shape.closing(index, event.reason)
        if self.is_done and not self._generation.include_usage:
            chunk = self._with_parks(chunk)
        return self._begin(index) + encode(chunk)

    def _with_parks(self, chunk: Json) -> Json:
        """The last chunk, with the record of all choices' parks if the server can park."""
        if not self._generation.tells_parks:
            return chunk
        return {**chunk, "preempt": park_record(self._all_usages())}

    def _all_usages(self) -> list[Usage]:
        return [self._usages[index] for index in range(len(self._usages))]

    def _begin(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        opening = self._shape.opening(index)
        return b"" if opening is None else encode(opening)

    def _notice(self, index: int, *words: str) -> bytes:
        if self._heartbeat is Heartbeat.DELTA:
            return self._empty_delta(index)
        mark = f" {index}" if self._has_indices else ""
        return "".join(f": {word}{mark}\n\n" for word in words).encode()

    def _empty_delta(self, index: int) -> bytes:
        return self._begin(index) + encode(self._shape.empty_delta(index))
