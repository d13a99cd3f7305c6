"""Streams, byte by byte: what opens them, what they tell, how they keep alive, how they end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from engine.api import EngineSnapshot, FinishReason, Parked, Restored, TokenDelta, TokenLogprob
from engine.errors import ContextLengthExceeded, DeviceFailure, InvalidRequest
from engine.runs import ParkCause, ParkReason, RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    BODIES,
    CHAT,
    HELLO,
    TEXT,
    AsgiCall,
    WatchedEngine,
    make_app,
    on_a_loop,
)
from fakes.runs import make_run
from studio.server.live_requests import LiveRequests
from studio.server.sse import MOST_UNREAD, StreamTimings

NEVER = 1000.0
PATIENT = StreamTimings(open_after_s=NEVER, keepalive_s=NEVER, parked_keepalive_s=NEVER)
HASTY = StreamTimings(open_after_s=0.001, keepalive_s=NEVER, parked_keepalive_s=NEVER)


def streamed(path: str = CHAT, **fields: object) -> dict[str, object]:
    return {**BODIES[path], "stream": True, **fields}


async def begin(
    engine: WatchedEngine, timings: StreamTimings = PATIENT, path: str = CHAT, **fields: object
) -> tuple[AsgiCall, list[str]]:
    """A streamed call whose requests have reached the engine."""
    call = AsgiCall(make_app(engine, timings=timings), path, streamed(path, **fields))
    while len(engine.requests) < int(str(fields.get("n", 1))):
        await call.pause()
    return call, list(engine.requests)


def said(request_id: str, text: str) -> TokenDelta:
    return TokenDelta(request_id=request_id, text=text, token_ids=(1,))


def parked(request_id: str) -> Parked:
    return Parked(
        request_id=request_id,
        held_tokens=64,
        place=1,
        reason=ParkReason(cause=ParkCause.PAGES_SHORT),
    )


def restored(request_id: str, recomputed_tokens: int = 0) -> Restored:
    return Restored(request_id=request_id, parked_s=1.0, recomputed_tokens=recomputed_tokens)


@on_a_loop
async def test_a_chat_stream_has_role_text_finish_and_done() -> None:
    call = AsgiCall(make_app(FakeEngine()), CHAT, streamed())
    await call.finished()
    assert call.status == 200
    assert call.headers["content-type"].startswith("text/event-stream")
    assert [chunk["choices"][0]["delta"] for chunk in call.chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello"},
        {"content": " there,"},
        {"content": " friend."},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in call.chunks] == [None] * 4 + ["stop"]
    assert {chunk["object"] for chunk in call.chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in call.chunks}) == 1
    assert call.text.endswith("}\n\ndata: [DONE]\n\n")
    assert call.is_complete


@on_a_loop
async def test_a_completion_stream_has_text_finish_and_done() -> None:
    call = AsgiCall(make_app(FakeEngine()), TEXT, streamed(TEXT))
    await call.finished()
    assert [chunk["choices"][0]["text"] for chunk in call.chunks] == [
        "Hello",
        " there,",
        " friend.",
        "",
    ]
    assert call.chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert {chunk["object"] for chunk in call.chunks} == {"text_completion"}
    assert call.text.endswith("data: [DONE]\n\n")


@on_a_loop
async def test_a_server_that_stops_just_after_the_end_adds_nothing_to_it() -> None:
    live = LiveRequests()
    call = AsgiCall(make_app(FakeEngine(), live=live), CHAT, streamed())
    call.on_complete = live.stop_all
    await call.finished()
    assert call.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", [CHAT, TEXT])
@on_a_loop
async def test_usage_is_one_last_chunk_with_no_choices_if_asked_for(path: str) -> None:
    call = AsgiCall(
        make_app(FakeEngine()), path, streamed(path, stream_options={"include_usage": True})
    )
    await call.finished()
    assert call.chunks[-1]["choices"] == []
    assert call.chunks[-1]["usage"]["total_tokens"] == 8
    assert all(chunk["usage"] is None for chunk in call.chunks[:-1])


@on_a_loop
async def test_length_is_told() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine)
    engine.finish(request_id, FinishReason.LENGTH)
    await call.finished()
    assert call.chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert call.chunks[-1]["choices"][0]["finish_reason"] == "length"


@on_a_loop
async def test_choices_are_interleaved_by_index_and_each_has_its_role_and_end() -> None:
    engine = WatchedEngine(auto=False)
    call, (first, second) = await begin(engine, n=2)
    await call.tell(engine, said(second, "b"), said(first, "a"))
    engine.finish(second)
    await call.until(lambda call: "stop" in call.text)
    await call.tell(engine, said(first, "a"))
    engine.finish(first)
    await call.finished()
    seen = [(c["index"], c["delta"].get("role"), c["delta"].get("content"), c["finish_reason"])
            for chunk in call.chunks for c in chunk["choices"]]  # fmt: skip
    assert seen == [
        (1, "assistant", "", None),
        (1, None, "b", None),
        (0, "assistant", "", None),
        (0, None, "a", None),
        (1, None, None, "stop"),
        (0, None, "a", None),
        (0, None, None, "stop"),
    ]


@on_a_loop
async def test_undecided_text_is_not_written_but_its_logprobs_are() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine, logprobs=True)
    engine.emit(TokenDelta(request_id=request_id, text="", token_ids=(1,)))
    entry = TokenLogprob(token_id=2, text="", token_bytes=b"\xf0", logprob=-1.0)
    engine.emit(TokenDelta(request_id=request_id, text="", token_ids=(2,), logprobs=(entry,)))
    engine.finish(request_id)
    await call.finished()
    middle = call.chunks[1:-1]
    assert [chunk["choices"][0]["logprobs"]["content"][0]["bytes"] for chunk in middle] == [[0xF0]]


@on_a_loop
async def test_a_park_opens_the_stream_and_is_told_in_comments() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine)
    engine.start(request_id)
    engine.emit(parked(request_id))
    await call.until(lambda call: call.writes)
    assert (call.status, call.writes) == (200, [": preempted\n\n"])
    engine.emit(restored(request_id))
    engine.emit(parked(request_id))
    engine.emit(restored(request_id, recomputed_tokens=30))
    engine.finish(request_id)
    await call.finished()
    assert call.writes[1:4] == [
        ": resumed\n\n",
        ": preempted\n\n",
        ": resumed\n\n: recomputed\n\n",
    ]


@on_a_loop
async def test_notices_of_several_choices_carry_the_index_zero_included() -> None:
    engine = WatchedEngine(auto=False)
    call, (first, second) = await begin(engine, n=2)
    await call.tell(engine, parked(first), parked(second))
    await call.tell(engine, restored(second, recomputed_tokens=1), restored(first))
    engine.finish(first)
    engine.finish(second)
    await call.finished()
    comments = [line for line in call.text.split("\n") if line.startswith(":")]
    assert comments == [
        ": preempted 0",
        ": preempted 1",
        ": resumed 1",
        ": recomputed 1",
        ": resumed 0",
    ]


@on_a_loop
async def test_parked_streams_keep_alive_until_they_are_back() -> None:
    timings = StreamTimings(open_after_s=NEVER, keepalive_s=NEVER, parked_keepalive_s=0.001)
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine, timings)
    engine.emit(parked(request_id))
    await call.until(lambda call: call.text.count(": preempt-keepalive\n\n") == 3)
    engine.emit(restored(request_id))
    await call.until(lambda call: ": resumed" in call.text)
    engine.finish(request_id)
    await call.finished()
    assert ": preempt-keepalive" not in call.text.split(": resumed")[1]


@on_a_loop
async def test_silence_opens_the_stream_and_is_then_broken_by_empty_comments() -> None:
    timings = StreamTimings(open_after_s=0.001, keepalive_s=NEVER, parked_keepalive_s=0.001)
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine, timings)
    await call.until(lambda call: call.status)
    await call.until(lambda call: call.text.startswith(":\n\n:\n\n"))
    engine.finish(request_id)
    await call.finished()
    assert call.chunks[0]["choices"][0]["delta"]["role"] == "assistant"


@on_a_loop
async def test_an_error_before_the_stream_opens_has_its_status() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine)
    engine.start(request_id)
    engine.fail(request_id, InvalidRequest("token 9 is unknown", param="prompt"))
    await call.finished()
    assert call.status == 400
    assert call.headers["content-type"] == "application/json"


@pytest.mark.parametrize("timings", [PATIENT, HASTY])
@on_a_loop
async def test_an_error_in_an_open_stream_is_an_event_and_the_end(timings: StreamTimings) -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine, timings)
    if timings is PATIENT:
        engine.say(request_id, "Hel")
    await call.until(lambda call: call.status)
    engine.fail(request_id, DeviceFailure("the device broke"))
    await call.finished()
    assert call.status == 200
    assert call.chunks[-1]["error"] == {
        "message": "the device broke",
        "type": "server_error",
        "param": None,
        "code": "device_failure",
    }
    assert call.is_complete
    assert "[DONE]" not in call.text


@on_a_loop
async def test_one_failing_choice_ends_the_stream_and_the_others() -> None:
    engine = WatchedEngine(auto=False)
    call, (first, second) = await begin(engine, n=2)
    engine.say(first, "a")
    engine.fail(second, DeviceFailure("the device broke"))
    await call.finished()
    assert "error" in call.chunks[-1]
    assert engine.aborted == [first]


@on_a_loop
async def test_a_client_that_leaves_ends_all_its_choices() -> None:
    engine = WatchedEngine(auto=False)
    call, ids = await begin(engine, n=2)
    engine.say(ids[0], "a")
    await call.until(lambda call: call.writes)
    await call.leave()
    assert sorted(engine.aborted) == sorted(ids)
    assert not call.is_complete


@on_a_loop
async def test_a_client_that_leaves_before_the_stream_opens_ends_it_too() -> None:
    engine = WatchedEngine(auto=False)
    call, ids = await begin(engine)
    await call.leave()
    assert engine.aborted == ids
    assert call.status is None


@on_a_loop
async def test_a_client_that_leaves_while_waiting_for_a_whole_reply_ends_it() -> None:
    engine = WatchedEngine(auto=False)
    call = AsgiCall(make_app(engine), CHAT, HELLO)
    while not engine.requests:
        await call.pause()
    await call.leave()
    assert engine.aborted == list(engine.requests)


@on_a_loop
async def test_a_finished_request_is_not_aborted() -> None:
    engine = WatchedEngine()
    call = AsgiCall(make_app(engine), CHAT, streamed(n=2))
    await call.finished()
    assert engine.aborted == []


@on_a_loop
async def test_a_reader_far_behind_ends_its_stream_with_an_error() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine)
    await call.tell(engine, said(request_id, "Once"))
    engine.emit(*[said(request_id, "x")] * (MOST_UNREAD + 2))
    await call.finished()
    assert call.chunks[-1]["error"]["code"] == "reader_too_slow"
    assert engine.aborted == [request_id]


@on_a_loop
async def test_between_two_writes_others_have_their_turn() -> None:
    engine = WatchedEngine(auto=False)
    call, (request_id,) = await begin(engine)
    engine.emit(*[said(request_id, "x")] * 20)
    counts = [0]
    while counts[-1] < 20:
        await call.pause()
        counts.append(len(call.writes))
    assert all(after - before <= 1 for before, after in pairwise(counts))
    engine.finish(request_id)
    await call.finished()


class Asked(WatchedEngine):
    """Counts how often somebody looks at its state."""

    def __init__(self) -> None:
        super().__init__(auto=False)
        self.num_looks = 0

    def snapshot(self) -> EngineSnapshot:
        self.num_looks += 1
        return super().snapshot()


@on_a_loop
async def test_a_stream_is_not_opened_while_its_prompt_may_still_be_refused() -> None:
    engine = Asked()
    call, (request_id,) = await begin(engine, HASTY)
    engine.publish(replace(make_run(request_id, RunState.QUEUED), prompt_tokens=0))
    looks = engine.num_looks
    while engine.num_looks < looks + 2:
        await call.pause()
    assert call.status is None
    too_long = ContextLengthExceeded("too long", needed_tokens=9, limit_tokens=5)
    engine.fail(request_id, too_long)
    await call.finished()
    assert call.status == 400


@on_a_loop
async def test_a_stream_is_opened_once_its_prompt_has_been_read() -> None:
    engine = Asked()
    call, (request_id,) = await begin(engine, HASTY)
    engine.publish(replace(make_run(request_id, RunState.QUEUED), prompt_tokens=0))
    looks = engine.num_looks
    while engine.num_looks < looks + 1:
        await call.pause()
    engine.publish(make_run(request_id, RunState.QUEUED))
    await call.until(lambda call: call.status == 200)
    engine.finish(request_id)
    await call.finished()
