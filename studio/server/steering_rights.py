"""What a key may do to requests in flight: to its own alone, and never lift one above its lane. Pure; server thread.

Whoever has no key of their own owns the machine, and may do anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.runs import Priority, Run
from studio.models.server_keys import Caller, Lane
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.share_gate import ShareGate


def check_own(caller: Caller, runs: Iterable[Run], gate: ShareGate) -> None:
    """Raises ApiError for a request that somebody else has asked."""
    for run in runs if caller.key_id else ():
        if gate.key_id_of(run.request_id) != caller.key_id:
            raise _forbidden(
                f"the request {run.request_id!r} is not of the key {caller.name!r}; each key steers its own, and "
                "Layby's window all of them",
                "run_not_yours",
            )


def check_lane(caller: Caller, priority: Priority) -> None:
    """Raises ApiError for a priority that is better than the key's lane."""
    if caller.key_id and priority < caller.lane.priority:
        raise _forbidden(
            f"priority is {priority.name.lower()}, and the lane of the key {caller.name!r} is {caller.lane.value}; "
            "give it a better one on Layby's page of keys",
            "above_lane",
        )


def check_pins(caller: Caller) -> None:
    """Raises ApiError for a key in a lane that others go before: a pinned request gives way to nobody."""
    if not may_go_first(caller):
        raise _forbidden(
            f"a pinned request gives way to nobody, and the lane of the key {caller.name!r} is {caller.lane.value}; "
            f"give it the lane {Lane.INTERACTIVE.value} on Layby's page of keys",
            "above_lane",
        )


def may_go_first(caller: Caller) -> bool:
    """Whether a request of the caller may stand before everybody's."""
    return not caller.key_id or caller.lane is Lane.INTERACTIVE


def _forbidden(message: str, code: str) -> ApiError:
    return ApiError(message, ErrorKind(403, INVALID_REQUEST, code))
