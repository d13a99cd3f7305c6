"""Keeps a row for each request of a program: an ASGI layer, and the note through which routes add what they know.

Server thread. Nothing is kept of questions about health and figures, which watchers ask every second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.api import Chat, Finished, Infill, Prompt, Request, RequestEvent, Text
from studio.models.request_log import MOST_PROMPT_CHARS, RequestLog, RequestRow, RequestState
from studio.models.server_keys import Caller
from studio.server.program_names import program_name

_QUIET_PATHS = frozenset({"/health", "/metrics", "/slots"})
_MOST_PATH_CHARS = 200
_NOTE = "layby.note"


class RequestNote:
    """The row of one request, as it is known so far. Without a log nothing is kept."""

    def __init__(self, log: RequestLog | None, row: RequestRow) -> None:
        self._log = log
        self._row = row

    def name(self, caller: Caller) -> None:
        """A key says who asks."""
        if caller.name:
            self._put(replace(self._row, client=caller.name, key=caller.name))

    def begin(self, requests: tuple[Request, ...], *, model: str, keeps_prompt: bool) -> None:
        """It has become requests to the engine."""
        self._put(
            replace(
                self._row,
                model=model,
                run_ids=tuple(request.request_id for request in requests),
                prompt=_words_of(requests[0].prompt)[:MOST_PROMPT_CHARS] if keeps_prompt else "",
            )
        )

    def hold_back(self, *, is_held: bool) -> None:
        """Its key has its share of the pool; or it has been let in."""
        state = RequestState.HELD_BACK if is_held else RequestState.RUNNING
        self._put(replace(self._row, state=state))

    def hear(self, event: RequestEvent) -> None:
        """Add what a choice that has ended took. The prompt of several choices counts once."""
        if isinstance(event, Finished):
            usage = event.usage
            self._put(
                replace(
                    self._row,
                    prompt_tokens=max(self._row.prompt_tokens, usage.prompt_tokens),
                    completion_tokens=self._row.completion_tokens + usage.completion_tokens,
                    parked_s=max(self._row.parked_s, usage.parked_s),
                )
            )

    def fail(self, message: str) -> None:
        """It ends with an error, perhaps after text."""
        self._put(replace(self._row, error=message, state=RequestState.REFUSED))

    def end(self, status: int, ended_s: float) -> None:
        """The answer has been sent, or will never be (status 0)."""
        state = self._row.state
        if state is not RequestState.REFUSED:
            state = _state_of(status)
        self._put(replace(self._row, status=status, ended_s=ended_s, state=state))

    def leave(self) -> None:
        """The client went away first."""
        self._put(replace(self._row, state=RequestState.LEFT))

    @property
    def has_left(self) -> bool:
        return self._row.state is RequestState.LEFT

    def _put(self, row: RequestRow) -> None:
        self._row = row
        if self._log is not None:
            self._log.put(row)


class RequestRows:
    """Makes the row, hands its note to what lies inside, and closes it."""

    def __init__(
        self, app: ASGIApp, log: RequestLog, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._log = log
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _QUIET_PATHS:
            await self._app(scope, receive, send)
            return
        note = RequestNote(self._log, self._new_row(scope))
        status = 0

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope.setdefault("state", {})[_NOTE] = note
        try:
            await self._app(scope, receive, send_and_look)
        finally:
            if note.has_left:
                status = 0
            note.end(status, self._clock())

    def _new_row(self, scope: Scope) -> RequestRow:
        agent = dict(scope["headers"]).get(b"user-agent", b"").decode("latin-1")
        client, program = scope.get("client"), program_name(agent)
        return RequestRow(
            row_id=self._log.new_id(),
            started_s=self._clock(),
            method=scope["method"],
            path=scope["path"][:_MOST_PATH_CHARS],
            client=program or (client[0] if client else ""),
            program=program,
        )


def note_of(scope: Scope) -> RequestNote:
    """The note of this request; one that nobody reads, where no rows are kept."""
    note = scope.get("state", {}).get(_NOTE)
    if isinstance(note, RequestNote):
        return note
    row = RequestRow(row_id=0, started_s=0.0, method="", path="", client="")
    return RequestNote(None, row)


def _state_of(status: int) -> RequestState:
    if status == 0:
        return RequestState.LEFT
    return RequestState.DONE if status < 400 else RequestState.REFUSED


def _words_of(prompt: Prompt) -> str:
    match prompt:
        case Chat():
            return "\n\n".join(f"{each.role}: {each.content}" for each in prompt.messages)
        case Text():
            return prompt.text
        case Infill():
            return f"{prompt.before}\u2026{prompt.after}"
    return " ".join(map(str, prompt.ids))
