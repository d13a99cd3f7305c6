"""Streams of every protocol: what signs of life and of parking look like in each framing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.api import (
    Finished,
    FinishReason,
    Origin,
    Parked,
    Request,
    Restored,
    Started,
    Text,
    TokenDelta,
    Usage,
)
from engine.errors import DeviceFailure, EngineError
from engine.runs import ParkCause, ParkReason
from studio.server.errors import ApiError
from studio.server.framing import LINES, NAMED_EVENTS, Framing, Json
from studio.server.generation import Generation
from studio.server.narrator import Heartbeat, Narrator
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd
from studio.server.request_rows import note_of

PARKED = Parked(
    request_id="a", held_tokens=64, place=1, reason=ParkReason(cause=ParkCause.PAGES_SHORT)
)
RESTORED = Restored(request_id="a", parked_s=1.0, recomputed_tokens=3)
SAID = TokenDelta(request_id="a", text="Hé", token_ids=(1,))
STARTED = Started(request_id="a", prompt_tokens=7, cached_tokens=2, queued_s=0.0)
USAGE = Usage(
    prompt_tokens=7, cached_tokens=2, completion_tokens=1, queued_s=0, prefill_s=0, decode_s=0
)
FINISHED = Finished(request_id="a", reason=FinishReason.STOP, usage=USAGE)


class PlainShape:
    """A protocol with two events for each that the engine has."""

    def __init__(self, framing: Framing) -> None:
        self.framing = framing

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        return ({"type": "open", "prompt": started.prompt_tokens if started else None},)

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        return ({"type": "text", "text": event.text}, {"type": "count", "count": 1})

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return ({"type": "ping"},)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        return ({"type": "end", "tokens": end.completion_tokens if end else None},)

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return ({"type": "error", "message": str(error)},)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        raise NotImplementedError


def narrator(framing: Framing, heartbeat: Heartbeat = Heartbeat.COMMENT) -> Narrator:
    request = Request(request_id="a", origin=Origin.API, prompt=Text(text="hi"))
    generation = Generation(
        requests=(request,),
        choices_per_prompt=1,
        shape=PlainShape(framing),
        note=note_of({"type": "http"}),
    )
    return Narrator(generation, heartbeat)


def test_named_events_have_the_name_of_their_type_and_no_last_word() -> None:
    teller = narrator(NAMED_EVENTS)
    assert teller.tell(0, STARTED) == b""
    told = teller.tell(0, SAID) + teller.tell(0, FINISHED)
    assert told.decode() == (
        'event: open\ndata: {"type":"open","prompt":7}\n\n'
        'event: text\ndata: {"type":"text","text":"Hé"}\n\n'
        'event: count\ndata: {"type":"count","count":1}\n\n'
        'event: end\ndata: {"type":"end","tokens":1}\n\n'
    )
    assert teller.is_done


def test_lines_are_json_and_nothing_else_while_parked_too() -> None:
    teller = narrator(LINES)
    told = [teller.tell(0, PARKED), teller.keepalive(), teller.tell(0, RESTORED)]
    assert told == [
        b'{"type":"open","prompt":null}\n{"type":"ping"}\n',
        b'{"type":"ping"}\n',
        b'{"type":"ping"}\n',
    ]
    assert teller.failure(DeviceFailure("broken")) == b'{"type":"error","message":"broken"}\n'


@pytest.mark.parametrize("is_parked", [True, False])
def test_named_events_are_parked_in_comments_and_ping_now_and_then(*, is_parked: bool) -> None:
    teller = narrator(NAMED_EVENTS)
    if is_parked:
        assert teller.tell(0, PARKED) == b": preempted\n\n"
    signs = [teller.keepalive() for _ in range(32)]
    comment = b": preempt-keepalive\n\n" if is_parked else b":\n\n"
    assert all(sign.startswith(comment) for sign in signs)
    pings = [number for number, sign in enumerate(signs) if b"event: ping" in sign]
    assert pings == [15, 31]
    assert signs[15].count(b"event: open") == 1
    assert b"event: open" not in signs[31]


def test_empty_deltas_on_request_are_the_protocols_own_signs_of_life() -> None:
    teller = narrator(NAMED_EVENTS, Heartbeat.DELTA)
    assert teller.tell(0, PARKED).startswith(b"event: open")
    assert teller.keepalive() == b'event: ping\ndata: {"type":"ping"}\n\n'
