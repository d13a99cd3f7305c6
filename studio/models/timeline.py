"""What has become of requests over the last minutes, as spans on lanes, and how well told waits held. Plain values.

Times are seconds of one monotonic clock. GUI thread; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from studio.models.chat import ids_of_request


class Stretch(Enum):
    """What a request did for a while."""

    QUEUED = "queued"
    WORKING = "working"
    """Its prompt was read, or its reply written."""
    PARKED = "parked"
    COMING_BACK = "coming_back"
    """Its state was copied back, or computed again."""

    @property
    def is_wait(self) -> bool:
        return self in (Stretch.QUEUED, Stretch.PARKED)


@dataclass(slots=True)
class Span:
    """One stretch of one request. `end_s` None: it lasts."""

    stretch: Stretch
    start_s: float
    request_id: str
    end_s: float | None = None
    others: tuple[str, ...] = ()
    """Names of those it waited for, as they were called then."""
    is_by_hand: bool = False
    """Parked by a person, for nobody."""

    def seconds(self, now_s: float) -> float:
        return (now_s if self.end_s is None else self.end_s) - self.start_s


@dataclass(slots=True)
class Lane:
    """A chat, over all its replies; or a program, over its requests one after another."""

    key: str
    name: str
    spans: list[Span] = field(default_factory=list)
    """In order of time, without overlap."""

    @property
    def last(self) -> Span | None:
        return self.spans[-1] if self.spans else None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many waits ended for which a time had been told, and how many of them within it."""

    num_told: int = 0
    num_held: int = 0

    def plus(self, *, is_held: bool) -> Tally:
        return Tally(self.num_told + 1, self.num_held + is_held)


@dataclass(frozen=True, slots=True)
class LongestWait:
    """The longest stretch that one request spent outside the pool."""

    name: str
    seconds: float
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shortage:
    """A time for which requests waited, and what they lacked."""

    end_s: float
    seconds: float
    num_waiting: int
    """Who waited for room, and had a seat."""
    pages: int
    """Pages that all of them lacked together."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds of waiting, of all requests together, and how many of these a larger pool would have saved."""

    waited_s: float = 0.0
    saved_s: float = 0.0


def saving_of(shortages: list[Shortage], extra_pages: int) -> Saving:
    """What a pool of `extra_pages` more would have saved of the waits for room.

    A wait counts as saved for as long as everybody's pages would have fitted. How much sooner replies would then have
    ended, and so have made room, is left out: the truth is at least this.
    """
    waited_s = sum(one.seconds * one.num_waiting for one in shortages)
    saved_s = sum(one.seconds * one.num_waiting for one in shortages if one.pages <= extra_pages)
    return Saving(waited_s, saved_s)


def owner_key(request_id: str) -> str:
    """Whose a request is: a chat's replies are the same one's, a program's request is alone. Hues go by this."""
    ids = ids_of_request(request_id)
    return f"chat-{ids[0]}" if ids else request_id
