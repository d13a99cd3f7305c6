"""The last ten minutes of the pool: who wrote, waited and came back when and for whom, and how well told waits held.

GUI thread, no Qt. It hears of every move of every request, and looks at the engine's published state when one comes or
when the window looks; while nothing moves and nobody looks it costs nothing. Its memory is bounded.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from engine.api import EngineSnapshot, Failed, Finished, Parked, Restored, Started
from engine.client import EngineClient, Move
from engine.runs import ParkCause, Run, RunState, WaitKind
from studio.models.chat import ids_of_request
from studio.models.run_words import said_latest_s
from studio.models.signal import Signal
from studio.models.timeline import (
    Lane,
    LongestWait,
    Saving,
    Shortage,
    Span,
    Stretch,
    Tally,
    owner_key,
    saving_of,
)
from studio.services.run_service import RunService

KEPT_S = 600.0
MOST_SPANS = 2000
"""Of all lanes together; the oldest go first."""
_MOST_SHORTAGES = 2000
_TIDY_MOVES = 200
"""After so many moves what is too old is let go of, though nobody looks."""
_MOST_NAMED = 3
_PROGRAM = "program "
"""Before the name of a program in the key of its lane."""
_SHORT_QUEUE_S = 0.2
"""Standing in line for less is no wait worth drawing."""
_FOR_ROOM = frozenset({WaitKind.NO_ROOM, WaitKind.WOULD_NOT_LAST, WaitKind.BEHIND_OTHERS})
_BY_HAND = frozenset({ParkCause.BY_USER, ParkCause.RELOAD, ParkCause.ON_DISK, ParkCause.FORCED})
"""Parks that are for nobody, and of which nothing can be foretold."""


@dataclass(slots=True)
class _Told:
    """What a request was told of its wait, the first time anything could be."""

    at_s: float
    latest_s: float


@dataclass(slots=True)
class _Now:
    """The engine as last seen, for adding up what waits lacked."""

    at_s: float
    num_waiting: int = 0
    pages_lacking: int = 0
    told: dict[str, _Told] = field(default_factory=dict)


class ParkHistory:
    """Listens until it is closed. `changed` is emitted after every move; drawing is up to whoever looks."""

    def __init__(
        self,
        client: EngineClient,
        runs: RunService,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.changed: Signal[[]] = Signal()
        self.tally = Tally()
        """Over the program's whole run."""
        self._runs = runs
        self._clock = clock
        self._lanes: dict[str, Lane] = {}
        self._taken: dict[str, str] = {}
        """The keys of lanes that programs' requests in flight have, by their ids."""
        self._shortages: deque[Shortage] = deque(maxlen=_MOST_SHORTAGES)
        self._now = _Now(clock())
        self._num_moves = 0
        self._disconnect = client.on_move(self._on_move)

    def close(self) -> None:
        """Listen no more."""
        self._disconnect()

    @property
    def now_s(self) -> float:
        """The clock that spans are measured on."""
        return self._clock()

    def lanes(self) -> tuple[Lane, ...]:
        """One for each chat and each program of the last minutes, the longest known first.

        A program with several requests at once has as many.
        """
        self._forget(self._clock())
        return tuple(self._lanes.values())

    def longest_wait(self) -> LongestWait | None:
        """The longest of the last minutes, one that lasts included; what was parked by hand does not count."""
        now_s = self._clock()
        waits = [
            span
            for lane in self._lanes.values()
            for span in lane.spans
            if span.stretch.is_wait and not span.is_by_hand
        ]
        if not waits:
            return None
        span = max(waits, key=lambda wait: wait.seconds(now_s))
        return LongestWait(self._runs.name(span.request_id), span.seconds(now_s), span.others)

    def saving(self, extra_bytes: int) -> Saving:
        """What so many bytes more for the pool would have saved of the waits of the last minutes."""
        self.look()
        page_bytes = self._runs.snapshot().pool.page_bytes
        if not page_bytes:
            return Saving()
        return saving_of(list(self._shortages), extra_bytes // page_bytes)

    def look(self) -> None:
        """Read the engine's published state; for as long as somebody watches, a few times a second."""
        now_s = self._clock()
        snapshot = self._runs.snapshot()
        self._add_up(now_s)
        for run in snapshot.runs:
            self._see(run, snapshot, now_s)
        self._remember(snapshot, now_s)

    # --- moves

    def _on_move(self, event: Move) -> None:
        now_s = self._clock()
        request_id = event.request_id
        match event:
            case Started():
                self._start(event, now_s)
            case Parked():
                self._park(event, now_s)
            case Restored():
                is_again = event.recomputed_tokens > 0
                self._end_wait(request_id, now_s)
                stretch = Stretch.COMING_BACK if is_again else Stretch.WORKING
                self._begin(request_id, stretch, now_s)
            case Finished() | Failed():
                self._now.told.pop(request_id, None)
                self._close(self._lanes.get(self._key(request_id)), now_s)
                self._taken.pop(request_id, None)
        self.look()
        self._num_moves += 1
        if self._num_moves % _TIDY_MOVES == 0:
            self._forget(now_s)
        self.changed.emit()

    def _start(self, event: Started, now_s: float) -> None:
        lane = self._lane(event.request_id)
        is_queued = lane.last is not None and lane.last.stretch is Stretch.QUEUED
        if is_queued and event.queued_s < _SHORT_QUEUE_S:
            lane.spans.pop()
        elif not is_queued and event.queued_s >= _SHORT_QUEUE_S:
            self._begin(event.request_id, Stretch.QUEUED, now_s - event.queued_s)
        if is_queued:  # else the state that was looked at is newer than this event
            self._end_wait(event.request_id, now_s)
        self._begin(event.request_id, Stretch.WORKING, now_s)

    def _park(self, event: Parked, now_s: float) -> None:
        is_by_hand = event.reason.cause in _BY_HAND
        others = tuple(self._runs.name(one) for one in event.reason.for_ids[:_MOST_NAMED])
        self._now.told.pop(event.request_id, None)
        span = self._begin(event.request_id, Stretch.PARKED, now_s)
        span.others, span.is_by_hand = others, is_by_hand

    def _end_wait(self, request_id: str, now_s: float) -> None:
        told = self._now.told.pop(request_id, None)
        if told is not None:
            is_held = now_s - told.at_s <= said_latest_s(told.latest_s)
            self.tally = self.tally.plus(is_held=is_held)

    # --- what is seen

    def _see(self, run: Run, snapshot: EngineSnapshot, now_s: float) -> None:
        if run.state is RunState.AWAITS_OWNER:
            return  # it has ended
        lane = self._lane(run.request_id)
        last = lane.last
        if last is None or last.end_s is not None or last.request_id != run.request_id:
            last = self._first_seen(run, now_s)
        elif last.stretch is Stretch.PARKED and run.state is RunState.BEING_RESTORED:
            last = self._begin(run.request_id, Stretch.COMING_BACK, now_s)
        elif last.stretch is Stretch.COMING_BACK and run.state is RunState.WRITING:
            last = self._begin(run.request_id, Stretch.WORKING, now_s)
        if not last.stretch.is_wait or last.is_by_hand or run.wait is None:
            return
        if run.wait.kind is WaitKind.HELD_BY_USER:
            last.is_by_hand = True
            self._now.told.pop(run.request_id, None)
            return
        if not last.others:
            ids = run.wait.ahead_ids or tuple(one.request_id for one in run.wait.holders)
            last.others = tuple(self._runs.name(one) for one in ids[:_MOST_NAMED])
        if run.request_id not in self._now.told and run.expected_wait_s is not None:
            self._now.told[run.request_id] = _Told(now_s, run.expected_wait_s[1])

    def _first_seen(self, run: Run, now_s: float) -> Span:
        match run.state:
            case RunState.QUEUED:
                return self._begin(run.request_id, Stretch.QUEUED, now_s - run.waited_s)
            case RunState.PARKED | RunState.BEING_PARKED:
                return self._begin(run.request_id, Stretch.PARKED, now_s)
            case _:
                return self._begin(run.request_id, Stretch.WORKING, now_s)

    def _add_up(self, now_s: float) -> None:
        before = self._now
        seconds = now_s - before.at_s
        if before.num_waiting and seconds > 0:
            self._shortages.append(
                Shortage(now_s, seconds, before.num_waiting, before.pages_lacking)
            )

    def _remember(self, snapshot: EngineSnapshot, now_s: float) -> None:
        waits = [run.wait for run in snapshot.runs if run.wait and run.wait.kind in _FOR_ROOM]
        pool, options = snapshot.pool, snapshot.options
        held = sum(one.pages for one in snapshot.holdings)
        needed = sum(wait.pages_needed for wait in waits)
        seats = options.parallel - snapshot.running if options is not None else 0
        self._now = _Now(
            now_s,
            num_waiting=max(min(len(waits), seats), 0),
            pages_lacking=max(held + needed - pool.total_pages, 0),
            told={run.request_id: told for run in snapshot.runs if (told := self._told(run))},
        )

    def _told(self, run: Run) -> _Told | None:
        return self._now.told.get(run.request_id)

    # --- lanes

    def _lane(self, request_id: str) -> Lane:
        key = self._key(request_id)
        lane = self._lanes.setdefault(key, Lane(key, ""))
        lane.name = self._runs.name(request_id)  # as in the list; a chat may have another title now
        return lane

    def _key(self, request_id: str) -> str:
        """The chat's lane, or that of the program; another one of it while that is taken by another request."""
        if ids_of_request(request_id) is not None:
            return owner_key(request_id)
        if request_id not in self._taken:
            name, taken = self._runs.program(request_id), self._taken.values()
            names = (name if number == 1 else f"{name} ({number})" for number in count(1))
            keys = (f"{_PROGRAM}{one}" for one in names)
            self._taken[request_id] = next(key for key in keys if key not in taken)
        return self._taken[request_id]

    def _begin(self, request_id: str, stretch: Stretch, start_s: float) -> Span:
        lane = self._lane(request_id)
        self._close(lane, start_s)
        span = Span(stretch, max(start_s, _end_of(lane)), request_id)
        lane.spans.append(span)
        return span

    @staticmethod
    def _close(lane: Lane | None, end_s: float) -> None:
        if lane is not None and lane.last is not None and lane.last.end_s is None:
            lane.last.end_s = max(end_s, lane.last.start_s)

    def _forget(self, now_s: float) -> None:
        """Let go of what is older than anybody looks at, and of the oldest where there is too much."""
        since_s = now_s - KEPT_S
        while self._shortages and self._shortages[0].end_s < since_s:
            self._shortages.popleft()
        excess = sum(len(lane.spans) for lane in self._lanes.values()) - MOST_SPANS
        if excess > 0:
            starts = sorted(span.start_s for lane in self._lanes.values() for span in lane.spans)
            since_s = max(since_s, starts[excess])
        for key, lane in tuple(self._lanes.items()):
            lane.spans = [one for one in lane.spans if one.end_s is None or one.end_s > since_s]
            if not lane.spans:
                del self._lanes[key]


def _end_of(lane: Lane) -> float:
    last = lane.last
    return last.end_s if last is not None and last.end_s is not None else float("-inf")
