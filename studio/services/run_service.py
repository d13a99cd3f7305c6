"""Every request in flight, the chats' and those of programs: what it is called, and what may be done about it.

GUI thread, no Qt. Reads the engine's published state and sends it commands; their outcome shows in that state, and as
events where a chat's reply is concerned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from engine.api import EngineSnapshot
from engine.client import EngineClient
from engine.runs import ParkNow, Pin, Priority, ResumeNext, Run, SetPriority
from studio.models.chat import Conversation, ids_of_request, is_summary
from studio.models.request_log import RequestLog
from studio.services.chat_service import ChatService

_SHORT_ID = re.compile(r"[^-_]*[-_]?(.{0,6})")
"""Six characters of an id after its kind: 3f2a1b of chatcmpl-3f2a1b9c."""


class Steer(Enum):
    """What can be done about a request in flight."""

    GO_FIRST = "go_first"
    """Head of the line; also brings back what was parked by hand."""
    PARK = "park"
    PIN = "pin"
    """Never park it while anybody else can be parked."""
    UNPIN = "unpin"
    INTERACTIVE = "interactive"
    """Before the others."""
    NORMAL = "normal"
    BACKGROUND = "background"
    """After the others."""
    STOP = "stop"


_PRIORITIES = {
    Steer.INTERACTIVE: Priority.INTERACTIVE,
    Steer.NORMAL: Priority.NORMAL,
    Steer.BACKGROUND: Priority.BACKGROUND,
}


class RunService:
    """Asked anew for each picture: it keeps nothing of what it has read."""

    def __init__(
        self, client: EngineClient, chats: ChatService, programs: RequestLog | None = None
    ) -> None:
        """`programs` tells which key a program's request came with, or what the program calls itself."""
        self.program_word = "API request"
        """What the request of a program without a name is called; the window says it in the user's language."""
        self.summary_word = "Summary"
        """The same for a request of Layby itself, which sums up the beginning of a chat."""
        self._client = client
        self._chats = chats
        self._programs = programs

    def snapshot(self) -> EngineSnapshot:
        """The engine's last published state; returns at once."""
        return self._client.snapshot()

    def chat_of(self, request_id: str) -> Conversation | None:
        """The chat whose running reply this is; None for a program's request and for a reply that has ended."""
        return next((chat for chat in self._chats.chats if chat.request_id == request_id), None)

    def names(self, runs: tuple[Run, ...]) -> dict[str, str]:
        """What each request is called, by its id: its chat's title, or the name and short id of a program's."""
        ids = [run.request_id for run in runs]
        titles, programs = self._titles(ids), self._program_names(ids)
        return {one: titles.get(one) or self._other_name(one, programs) for one in ids}

    def name(self, request_id: str) -> str:
        """What a request is called, also one that has ended meanwhile."""
        found = self._titles([request_id]).get(request_id)
        return found or self._other_name(request_id, self._program_names([request_id]))

    def program(self, request_id: str) -> str:
        """What the program is called that a request came from: its key, its own name, or `program_word`."""
        if is_summary(request_id):
            return self.summary_word
        return self._program_names([request_id]).get(request_id) or self.program_word

    def _other_name(self, request_id: str, programs: dict[str, str]) -> str:
        if is_summary(request_id):
            return self.summary_word
        name, found = programs.get(request_id) or self.program_word, _SHORT_ID.match(request_id)
        return f"{name} {found.group(1) if found else request_id}".rstrip()

    def _titles(self, request_ids: Iterable[str]) -> dict[str, str]:
        """Titles of the chats whose replies these are, deleted ones too. Asked ten times a second, with thousands."""
        replies: dict[int, list[str]] = {}
        for request_id in request_ids:
            if (ids := ids_of_request(request_id)) is not None:
                replies.setdefault(ids[0], []).append(request_id)
        if not replies:
            return {}
        every = (*self._chats.chats, *self._chats.book.deleted)
        known = (chat for chat in every if chat.chat_id in replies)
        return {one: chat.title for chat in known for one in replies[chat.chat_id]}

    def _program_names(self, request_ids: Iterable[str]) -> dict[str, str]:
        """Names of the keys that these came with, or of the programs; the newest rows are looked at first."""
        wanted = {one for one in request_ids if ids_of_request(one) is None}
        rows = self._programs.rows if self._programs is not None else ()
        found: dict[str, str] = {}
        for row in reversed(rows):
            if not wanted:
                break
            for run_id in wanted.intersection(row.run_ids):
                wanted.remove(run_id)
                found[run_id] = row.key or row.program
        return found

    def steer_chat(self, chat: Conversation, steer: Steer) -> None:
        """Do it to the chat's running reply; nothing if none is running."""
        if (request_id := chat.request_id) is not None:
            self.steer(request_id, steer)

    def steer(self, request_id: str, steer: Steer) -> None:
        """Do it to a request; one that has ended meanwhile is left alone."""
        match steer:
            case Steer.GO_FIRST:
                self._client.control(ResumeNext(request_id=request_id))
            case Steer.PARK:
                self._client.control(ParkNow(request_id=request_id))
            case Steer.PIN:
                self._client.control(Pin(request_id=request_id))
            case Steer.UNPIN:
                self._client.control(Pin(request_id=request_id, is_pinned=False))
            case Steer.INTERACTIVE | Steer.NORMAL | Steer.BACKGROUND:
                priority = _PRIORITIES[steer]
                self._client.control(SetPriority(request_id=request_id, priority=priority))
            case Steer.STOP if (chat := self.chat_of(request_id)) is not None:
                self._chats.stop(chat)
            case Steer.STOP:
                self._client.abort(request_id)
