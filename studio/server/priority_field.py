"""The lane of a request on the wire, by name: what a request may ask for itself, and what it may be moved to.

Any thread; no web framework.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from engine.runs import Priority
from studio.models.server_keys import Caller
from studio.server.wire import wrong_value

_PRIORITIES = {priority.name.lower(): priority for priority in Priority}
_NAMES = {**_PRIORITIES, "batch": Priority.BACKGROUND}
"""Beside their own, what some programs call the last one."""


def _read_priority(value: object) -> object:
    if not isinstance(value, str) or value.lower() not in _NAMES:
        raise wrong_value(f"is {value!r:.40}, allowed are {', '.join(_PRIORITIES)}")
    return _NAMES[value.lower()]


def _read_optional(value: object) -> object:
    return None if value is None else _read_priority(value)


PriorityName = Annotated[
    Priority, BeforeValidator(_read_priority), WithJsonSchema({"enum": list(_NAMES)})
]

AskedPriority = Annotated[
    Priority | None,
    BeforeValidator(_read_optional),
    WithJsonSchema({"enum": [*_NAMES, None]}),
]
"""Of a request that is sent; None: the caller's lane."""


def priority_of(caller: Caller, asked: Priority | None) -> Priority:
    """The lane that a request goes in.

    A key's lane is the best that its requests get: what asks for more stays in it, as a program does not always know
    which key it was given. Whoever has no key of their own owns the machine, and may take any.
    """
    lane = caller.lane.priority
    if asked is None:
        return lane
    return max(asked, lane) if caller.key_id else asked
