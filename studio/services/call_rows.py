"""Calls of tools as JSON for the history and for files of chats, and back. Pure functions.

Whoever reads has outlived the program that wrote: a call that was running then waits for the user's word again, since
nobody knows whether it was done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from typing import Any

from studio.models.tool_use import ChatTools, ToolUse, ToolUseState

_log = logging.getLogger(__name__)
_TEXTS = tuple(one.name for one in fields(ToolUse) if one.type == "str")


def calls_as_json(calls: Iterable[ToolUse]) -> str:
    """A list of objects; "[]" for none."""
    return json.dumps([{**asdict(use), "state": use.state.value} for use in calls])


def calls_from_json(text: str, whose: str) -> tuple[ToolUse, ...]:
    """The calls of a text; none, and a line in the log, where it is not readable."""
    if text == "[]":
        return ()
    try:
        return tuple(_use(entry) for entry in json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _log.warning("%s: its calls of tools are not readable (%s)", whose, error)
        return ()


def settled(calls: Iterable[ToolUse]) -> tuple[ToolUse, ...]:
    """The calls, those that are open as ones that were not wanted."""
    return tuple(
        replace(use, state=ToolUseState.DENIED) if use.state.is_open else use for use in calls
    )


def tools_as_json(tools: ChatTools) -> str:
    """An object; "{}" for none."""
    return json.dumps({name: value for name, value in asdict(tools).items() if value})


def tools_from_json(text: str, whose: str) -> ChatTools:
    """The tools of a text; none, and a line in the log, where it is not readable."""
    if text == "{}":
        return ChatTools()
    try:
        values = json.loads(text)
        return ChatTools(
            servers=tuple(str(name) for name in values.get("servers", ())),
            always=tuple((str(server), str(tool)) for server, tool in values.get("always", ())),
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        _log.warning("%s: its tools are not readable (%s)", whose, error)
        return ChatTools()


def _use(entry: dict[str, Any]) -> ToolUse:
    texts = {name: str(entry.get(name, "")) for name in _TEXTS}
    use = ToolUse(
        **texts,
        state=ToolUseState(entry["state"]),
        was_interrupted=entry.get("was_interrupted") is True,
    )
    if use.state is ToolUseState.RUNNING:
        return replace(use, state=ToolUseState.ASKED, was_interrupted=True)
    if use.state is ToolUseState.ALLOWED:
        return replace(use, state=ToolUseState.ASKED)
    return use
