"""Calls of tools and their servers in words, as shapes and readable arguments. Pure functions on the GUI thread.

Must not import services or widgets.
"""

from __future__ import annotations

import json
from typing import assert_never

from studio.models.one_line import one_line
from studio.models.tool_servers import LinkState, LinkStatus, ToolServer
from studio.models.tool_use import ToolUse, ToolUseState
from studio.views.error_words import as_sentence
from studio.views.status_words import Mark, StatusWords, Tone, joined
from studio.views.words import plural, tr

MOST_ARGUMENT_CHARS = 2_000
_MOST_VALUE_CHARS = 400


def describe_use(use: ToolUse, *, is_written: bool = True) -> StatusWords:
    """How a call stands; `is_written` is False while the model still writes it."""
    if not is_written:
        return StatusWords(Mark.DOT, tr("Being written"), Tone.ACTIVE)
    match use.state:
        case ToolUseState.ASKED if use.was_interrupted:
            words = tr("Layby closed while it ran; whether it was done is not known")
            return StatusWords(Mark.HAND, words, Tone.WAITING)
        case ToolUseState.ASKED:
            return StatusWords(Mark.HAND, tr("Waiting for your answer"), Tone.WAITING)
        case ToolUseState.ALLOWED | ToolUseState.RUNNING:
            return StatusWords(Mark.TURN, tr("Running"), Tone.ACTIVE)
        case ToolUseState.DONE:
            return StatusWords(Mark.CHECK, tr("Done"))
        case ToolUseState.FAILED:
            return StatusWords(Mark.CROSS, tr("Failed"), Tone.FAILED)
        case ToolUseState.DENIED:
            return StatusWords(Mark.SQUARE, tr("Not allowed"))
    assert_never(use.state)


def use_title(use: ToolUse) -> str:
    """What is called: the tool, and whose it is."""
    return joined(one_line(use.tool or use.name) or tr("A tool"), one_line(use.server))


def readable_arguments(text: str) -> str:
    """The arguments, a line each; what is no JSON object as it is."""
    try:
        values = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return _cut(text, MOST_ARGUMENT_CHARS)
    if not isinstance(values, dict):
        return _cut(text, MOST_ARGUMENT_CHARS)
    lines = (f"{name}: {_value(value)}" for name, value in values.items())
    return _cut("\n".join(lines), MOST_ARGUMENT_CHARS)


def link_words(server: ToolServer, status: LinkStatus) -> StatusWords:
    """How a server stands."""
    if not server.is_on:
        return StatusWords(Mark.SQUARE, tr("Switched off"))
    match status.state:
        case LinkState.OFF:
            return StatusWords(Mark.NONE, tr("Starts when a chat uses it"))
        case LinkState.STARTING:
            return StatusWords(Mark.TURN, tr("Starting"), Tone.ACTIVE)
        case LinkState.READY:
            return StatusWords(Mark.CHECK, joined(tr("Running"), tools_words(len(status.tools))))
        case LinkState.FAILED:
            words = tr(status.problem).removeprefix(f"{server.name}: ")  # the row says whose it is
            return StatusWords(Mark.CROSS, as_sentence(words), Tone.FAILED)
    assert_never(status.state)


def tools_words(number: int) -> str:
    """ "3 tools"."""
    return plural(number, "1 tool", "{count} tools")


def place_words(server: ToolServer) -> str:
    """Where a server is: its command line, or its address."""
    return " ".join((server.command, *server.args)) if server.is_program else server.url


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(text, _MOST_VALUE_CHARS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
