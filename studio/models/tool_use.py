"""A reply's calls of tools: what the model asked for, what the user said to it, what came of it.

Plain immutable state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ToolUseState(Enum):
    """How a call stands. The first three are open: the reply goes on when none is."""

    ASKED = "asked"
    """It waits for the user's word."""
    ALLOWED = "allowed"
    """It is about to run."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """The tool says so, or it could not be run; the result says why."""
    DENIED = "denied"
    """The user does not want it."""

    @property
    def is_open(self) -> bool:
        return self in (ToolUseState.ASKED, ToolUseState.ALLOWED, ToolUseState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One call. `name` is what the model calls the tool, `server` and `tool` are what it stands for."""

    call_id: str
    name: str
    arguments: str
    """A JSON object, as the model wrote it."""
    server: str = ""
    """Empty: no tool of that name was given to the model."""
    tool: str = ""
    state: ToolUseState = ToolUseState.ASKED
    result: str = ""
    """What the model is told of it; why it failed; the user's word on denying it, which may be empty."""
    was_interrupted: bool = False
    """Layby closed while it ran: nobody knows whether it was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTools:
    """The tools of one chat."""

    servers: tuple[str, ...] = ()
    """Names of the servers whose tools the model may call."""
    always: tuple[tuple[str, str], ...] = ()
    """Server and tool of those that run without asking."""

    def allows(self, use: ToolUse) -> bool:
        """Whether a call runs without asking."""
        return (use.server, use.tool) in self.always
