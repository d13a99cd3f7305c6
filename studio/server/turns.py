"""A conversation put together from items that may be smaller than turns: texts, thoughts, calls and their results.

For wire formats that tell them one by one. Neighbours of one role become one turn, which is what templates expect. Any
thread; no web framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.api import ChatMessage, ToolCall

ASSISTANT = "assistant"
TOOL = "tool"
_NO_EFFORT = ("none", "minimal")


@dataclass(slots=True)
class _Draft:
    """The newest turn, to which the next item may belong."""

    role: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def turn(self) -> ChatMessage:
        return ChatMessage(
            role=self.role,
            content="\n".join(self.texts),
            reasoning="\n".join(self.thoughts),
            tool_calls=tuple(self.calls),
        )


class Turns:
    """Takes items in their order."""

    def __init__(self) -> None:
        self._done: list[ChatMessage] = []
        self._draft: _Draft | None = None
        self._tool_names: dict[str, str] = {}

    def say(self, role: str, pieces: Sequence[str]) -> None:
        """A text. The pieces of an assistant's are as a reply was cut; those of others are a line each."""
        self._of(role).texts.append(("" if role == ASSISTANT else "\n").join(pieces))

    def think(self, text: str) -> None:
        """What the assistant thought before what follows."""
        self._of(ASSISTANT).thoughts.append(text)

    def call(self, call: ToolCall) -> None:
        """A tool that the assistant called."""
        self._of(ASSISTANT).calls.append(call)
        self._tool_names[call.call_id] = call.name

    def answer(self, call_id: str, text: str) -> None:
        """What a tool gave back: a turn for each call."""
        self._close()
        name = self._tool_names.get(call_id, "")
        self._done.append(ChatMessage(role=TOOL, content=text, tool_call_id=call_id, name=name))

    def messages(self) -> tuple[ChatMessage, ...]:
        """All turns."""
        self._close()
        return tuple(self._done)

    def _of(self, role: str) -> _Draft:
        if self._draft is None or self._draft.role != role:
            self._close()
            self._draft = _Draft(role)
        return self._draft

    def _close(self) -> None:
        if self._draft is not None:
            self._done.append(self._draft.turn())
            self._draft = None


def thinking_options(
    is_on: bool | None, *, effort: str | None = None, budget_tokens: int | None = None
) -> tuple[tuple[str, object], ...]:
    """Whether and how much to think, under the names that the templates of common families read."""
    options: list[tuple[str, object]] = []
    if is_on is not None:
        options += [("enable_thinking", is_on), ("thinking", is_on)]
    if effort is not None:
        options.append(("reasoning_effort", effort))
    if budget_tokens is not None:
        options.append(("thinking_budget", budget_tokens))
    return tuple(options)


def effort_options(effort: str | None) -> tuple[tuple[str, object], ...]:
    """The same of OpenAI's word for how much to think; without it, it is as the template has it."""
    is_on = None if effort is None else effort not in _NO_EFFORT
    return thinking_options(is_on, effort=effort)
