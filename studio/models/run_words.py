"""Why a request was parked, what it waits for and how long, in plain words: the one table for window and server.

Pure functions over `engine.runs`, any thread. English; no Qt, no web framework. A park is nothing that went wrong, so
no sentence here speaks of stalls or failures.
"""

from __future__ import annotations

import math
from typing import assert_never

from engine.runs import ParkCause, ParkReason, RunState, WaitKind, WaitReason

_STATES = {
    RunState.QUEUED: "Queued",
    RunState.READING: "Reading",
    RunState.WRITING: "Writing",
    RunState.BEING_PARKED: "Being parked",
    RunState.PARKED: "Parked",
    RunState.BEING_RESTORED: "Coming back",
    RunState.AWAITS_OWNER: "Waiting for your answer",
}

_SOON_S = 1
"""What is said to be at any moment."""


def state_words(state: RunState) -> str:
    """Where a request is, in one or two words."""
    return _STATES[state]


def reason_words(reason: WaitReason | ParkReason) -> str:
    """Why a request is outside the pool, or why it was parked, as one sentence without its full stop."""
    if isinstance(reason, ParkReason):
        return _park_words(reason)
    return _wait_words(reason)


def expected_wait_words(expected_wait_s: tuple[float, float], *, what: str = "back") -> str:
    """When a request is expected back, as "back in 4 to 20 s"; the range is the one of `Run.expected_wait_s`.

    `what` is what happens then: "back" for a parked request, "starts" for one that was never in.
    """
    soonest, latest = math.floor(expected_wait_s[0]), said_latest_s(expected_wait_s[1])
    if latest <= _SOON_S:
        return f"{what} at any moment"
    if soonest < 1:
        return f"{what} within {_seconds(latest)}"
    if _seconds(soonest) == _seconds(latest):
        return f"{what} in about {_seconds(latest)}"
    if latest < 60:
        return f"{what} in {soonest} to {_seconds(latest)}"
    if soonest >= 60:
        return f"{what} in {soonest // 60} to {_seconds(latest)}"
    return f"{what} in {_seconds(soonest)} to {_seconds(latest)}"


def said_latest_s(latest_s: float) -> int:
    """The last moment that the words for an expected wait allow for, in seconds from then: whole ones, later minutes.

    Rounded up, so that whoever comes back at the latest foretold does not come later than was said.
    """
    seconds = max(math.ceil(latest_s), _SOON_S)
    return seconds if seconds < 60 else 60 * math.ceil(seconds / 60)


def _park_words(reason: ParkReason) -> str:
    others = _count(len(reason.for_ids), "other request") if reason.for_ids else "other requests"
    match reason.cause:
        case ParkCause.PAGES_SHORT | ParkCause.LAST_RESORT:
            return f"Parked to make room for {others}"
        case ParkCause.ROTATION:
            return f"Parked so that {others} can have a turn after waiting long enough"
        case ParkCause.BY_USER:
            return "Parked by hand until it is resumed by hand"
        case ParkCause.FORCED:
            return "Parked for a moment, as a test setting asks"
        case ParkCause.ON_DISK:
            return "Going on from where it was parked before the model was loaded"
        case ParkCause.RELOAD:
            return "Waiting for the model to be loaded anew; it goes on by itself"
        case ParkCause.OWNER_AWAY:
            return "Its room is lent out until you answer"
    assert_never(reason.cause)


def _wait_words(reason: WaitReason) -> str:
    pages = f"it needs {_count(reason.pages_needed, 'page')} and {reason.pages_spare} are spare"
    match reason.kind:
        case WaitKind.ENTERS_NEXT:
            return "Enters with the next step"
        case WaitKind.NO_SEAT:
            return "Waiting for a seat: as many requests as may run at once are running"
        case WaitKind.NO_STEP_TOKENS:
            return "Waiting for the prompts before it to be read"
        case WaitKind.NO_ROOM:
            return f"Waiting for room: {pages}"
        case WaitKind.WOULD_NOT_LAST:
            return "Waiting for lasting room: it fits now, but the others will grow into it"
        case WaitKind.BEHIND_OTHERS:
            return f"Waiting in line behind {_count(reason.num_ahead, 'other request')}"
        case WaitKind.HELD_BY_USER:
            return "Parked by hand until it is resumed by hand"
        case WaitKind.BEHIND_SIBLINGS:
            return "Waiting for the other replies to the same request; they return together"
        case WaitKind.BEING_SAVED:
            return "What it has read and written is being put aside"
        case WaitKind.BEING_RESTORED:
            return "What it has read and written is being brought back"
        case WaitKind.RESTORE_FAILED:
            return "Waiting for another try to bring back what it has read and written"
        case WaitKind.OWNER:
            return "When you answer it comes back before the others"
    assert_never(reason.kind)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number:,} {thing}s"


def _seconds(seconds: int) -> str:
    """12 s, 3 min."""
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"
