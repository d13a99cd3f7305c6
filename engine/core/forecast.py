"""How long those in line will wait: what follows from the rules, and how far that has been from the truth lately.

Pure: times and speeds are arguments. The rules tell when somebody enters if nobody ends early and nobody changes
anything by hand (`entry_of`). People do, and replies end when they end, so the `Forecaster` remembers which share of
such times the last waits took, and tells a range that most of them would have kept to. Engine thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from engine.core.config import GUARD_S, GUARD_TOKENS
from engine.core.types import WAITS, SeqStatus, Sequence

_LEAST_S = 1.0
"""Shares are taken of at least so much: nobody tells tenths of a second apart."""

_AT_FIRST = {True: (0.1, 0.7, 1.1, 1.6), False: (0.0, 0.2, 0.5, 1.2)}
"""The shares that waits for turns, and waits for ends, are taken to have needed before any was seen: turns are put off
by others, and most replies end long before their limits."""

_WEIGHT = 3
"""A wait that was seen counts as much as so many of those."""

_REMEMBERED = 40
"""Waits of each kind that count."""

_SOON, _LATE = 0.1, 0.93
"""Of ten waits one may end before the range that is told, and one in fourteen after it."""

_OVERDUE = 0.5
"""Whoever has waited longer than was foretold is told that it may take so much of that time again."""

_VAGUE_S = 120.0
_VAGUE = 4
"""A range that reaches beyond so many seconds, and its end to so many times its beginning, says nothing."""


@dataclass(frozen=True, slots=True)
class Resident:
    """Somebody in the pool, as far as others wait for him."""

    pages: int
    tokens_left: int
    """Tokens until its own limit or the window ends it, at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the wait of somebody in line depends on."""

    pages_lacking: int
    """Pages that must come free before it enters, for those before it too."""
    seats_lacking: int = 0
    """Seats that must come free, likewise."""
    residents: tuple[Resident, ...] = ()
    ahead_tokens: int = 0
    """Tokens that those before it may still generate."""
    turns_s: tuple[float, ...] = ()
    """Seconds until those before it, and last it itself, get the room from others; empty where nobody gives way."""
    more_turns: int = 0
    """Turns between these that are not told one by one, far back in a long line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """When somebody enters if nobody ends before its limit and nobody changes anything."""

    seconds: float
    is_turn: bool
    """Whether others give way to it; else it waits for others to end."""


def entry_of(outlook: Outlook, *, tokens_s: float) -> Entry:
    """The entry of somebody in line, from now, at `tokens_s` measured tokens per second of one sequence.

    Where residents give way it is a matter of turns: of those before it and its own, each after the time that is a
    resident's after a return. Elsewhere it is a matter of the residents' ends, which come when enough of them have
    reached their limits. For the next in line that bounds the turn too; those further back may find the room taken
    again. Raises ValueError on a speed that is not above 0.
    """
    if not tokens_s > 0:
        raise ValueError(f"tokens_s is {tokens_s}, it must be above 0")
    is_turn = bool(outlook.turns_s)
    if outlook.pages_lacking <= 0 and outlook.seats_lacking <= 0:
        return Entry(0.0, is_turn)
    ends_s = _tokens_until_enough_end(outlook) / tokens_s
    if not is_turn:
        return Entry(ends_s, is_turn)
    guard_s = min(GUARD_S, GUARD_TOKENS / tokens_s)
    turn_s = 0.0
    for owed_s in outlook.turns_s:
        turn_s = max(turn_s, owed_s) + guard_s
    turn_s += outlook.more_turns * guard_s
    return Entry(min(turn_s, ends_s) if len(outlook.turns_s) == 1 else turn_s, is_turn)


@dataclass(frozen=True, slots=True)
class _Told:
    """What somebody was told when its wait began."""

    at_s: float
    entry: Entry
    num_parks: int

    @property
    def whole_s(self) -> float:
        return max(self.entry.seconds, _LEAST_S)


class Forecaster:
    """Tells ranges of seconds. One that waits hears of the same moments again and again, unless something changes:
    what is added to its entry, for all that is not foreseen, follows from what it was told first.
    """

    def __init__(self) -> None:
        self._told: dict[Sequence, _Told] = {}
        self._shares: dict[bool, deque[float]] = {
            is_turn: deque(maxlen=_REMEMBERED) for is_turn in (False, True)
        }
        """Which share of its foretold time each of the last waits took: of those for ends, and of those for turns."""

    def learn(self, live: Collection[Sequence], now_s: float) -> None:
        """Take note of whose wait is over; to be called before anybody is told anything at that moment."""
        alive = frozenset(live)
        for seq, told in tuple(self._told.items()):
            is_same_wait = seq in alive and seq.num_parks == told.num_parks
            if is_same_wait and seq.status in WAITS and not seq.is_held:
                continue
            del self._told[seq]
            if is_same_wait and seq.status in (SeqStatus.RUNNING, SeqStatus.RESTORING):
                self._shares[told.entry.is_turn].append((now_s - told.at_s) / told.whole_s)

    def tell(self, seq: Sequence, entry: Entry, now_s: float) -> tuple[float, float] | None:
        """The soonest and latest entry to expect for somebody in line, from now; None if that is too vague to tell."""
        told = self._told.get(seq)
        if told is None:
            told = self._told[seq] = _Told(now_s, entry, seq.num_parks)
        kind = told.entry.is_turn
        soon, late = min(self._share(kind, _SOON), 1.0), self._share(kind, _LATE)
        latest_s = entry.seconds * min(late, 1.0) + told.whole_s * max(late - 1.0, 0.0)
        passed_s = now_s - told.at_s
        if passed_s > told.whole_s * late:
            latest_s = max(latest_s, passed_s * _OVERDUE)
        soonest_s = min(entry.seconds * soon, latest_s)
        if latest_s > _VAGUE_S and latest_s > _VAGUE * soonest_s:
            return None
        return soonest_s, latest_s

    def _share(self, is_turn: bool, part: float) -> float:
        """What `part` of the waits of a kind took at most, those assumed at first among them."""
        weighed = [(share, 1) for share in _AT_FIRST[is_turn]]
        weighed += [(share, _WEIGHT) for share in self._shares[is_turn]]
        left = part * sum(weight for _, weight in weighed)
        for share, weight in sorted(weighed):
            left -= weight
            if left <= 0:
                return share
        raise AssertionError(f"{part} of the waits is more than all of them")


def _tokens_until_enough_end(outlook: Outlook) -> int:
    """Tokens that the slowest of those generates who must end first: residents, then those before it in line."""
    pages, seats = outlook.pages_lacking, outlook.seats_lacking
    tokens = 0
    for one in sorted(outlook.residents, key=lambda one: one.tokens_left):
        if pages <= 0 and seats <= 0:
            return tokens
        pages, seats, tokens = pages - one.pages, seats - 1, one.tokens_left
    return tokens if pages <= 0 and seats <= 0 else tokens + outlook.ahead_tokens
