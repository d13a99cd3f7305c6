"""Anthropic's message, in one piece and as events: blocks, reasons to stop, usage, errors, parking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.api import Finished, FinishReason, ToolCallDelta, Usage
from engine.errors import ContextLengthExceeded, DeviceFailure, WaitedTooLong
from engine.runs import ParkUsage
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    COUNT,
    HELLO,
    MESSAGES,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
    open_client,
)
from studio.server.sse import StreamTimings

BODY = {**HELLO, "max_tokens": 64}
LIVELY = StreamTimings(open_after_s=0.001, keepalive_s=0.001, parked_keepalive_s=0.001)
LOOK = ToolCallDelta(index=0, call_id="call_1", name="look")


async def begin(
    engine: WatchedEngine, *, timings: StreamTimings | None = None, **fields: Any
) -> tuple[AsgiCall, str]:
    call = AsgiCall(make_app(engine, timings=timings), MESSAGES, {**BODY, **fields})
    while not engine.requests:
        await call.pause()
    (request_id,) = engine.requests
    return call, request_id


def events(call: AsgiCall) -> list[dict[str, Any]]:
    """All events; each is named by its type."""
    found = []
    for block in call.text.split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            event = json.loads(data.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            found.append(event)
    return found


def play(engine: WatchedEngine, request_id: str) -> None:
    """A reply that thinks, speaks and calls."""
    engine.start(request_id, prompt_tokens=5, cached_tokens=2)
    engine.write(request_id, reasoning="Look ")
    engine.write(request_id, reasoning="first.")
    engine.write(request_id, text="I will look.")
    engine.write(request_id, call=LOOK)
    engine.write(request_id, call=ToolCallDelta(index=0, arguments='{"at":'))
    engine.write(request_id, call=ToolCallDelta(index=0, arguments=' "sky"}'))
    engine.finish(request_id, FinishReason.TOOL_CALLS)


@on_a_loop
async def test_a_message_in_one_piece() -> None:
    async with open_client(FakeEngine()) as client:
        answer = (await client.post(MESSAGES, json=BODY)).json()
    assert answer.pop("id").startswith("msg_")
    assert answer == {
        "type": "message",
        "role": "assistant",
        "model": "tiny",
        "content": [{"type": "text", "text": "Hello there, friend."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 3,
        },
    }


@pytest.mark.parametrize("display", ["summarized", "omitted"])
@on_a_loop
async def test_thoughts_and_calls_are_blocks_in_their_order(display: str) -> None:
    engine = WatchedEngine(auto=False)
    thinking = {"type": "adaptive", "display": display}
    call, request_id = await begin(engine, thinking=thinking)
    play(engine, request_id)
    await call.finished()
    answer = json.loads(call.text)
    thoughts = "Look first." if display == "summarized" else ""
    assert answer["content"] == [
        {"type": "thinking", "thinking": thoughts, "signature": ""},
        {"type": "text", "text": "I will look."},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "sky"}},
    ]
    assert answer["stop_reason"] == "tool_use"


@on_a_loop
async def test_a_stream_has_an_event_for_each_step_of_each_block() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=True)
    play(engine, request_id)
    await call.finished()
    told = events(call)
    assert [event["type"] for event in told] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_delta"),
        *("content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_delta"),
        "content_block_stop",
        *("message_delta", "message_stop"),
    ]
    start = told[0]["message"]
    assert (start["content"], start["stop_reason"]) == ([], None)
    assert (start["usage"]["input_tokens"], start["usage"]["cache_read_input_tokens"]) == (3, 2)
    assert [event["index"] for event in told if "index" in event] == [0] * 5 + [1] * 3 + [2] * 4
    assert [event["content_block"] for event in told if "content_block" in event] == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {}},
    ]
    assert [event["delta"] for event in told if event["type"] == "content_block_delta"] == [
        {"type": "thinking_delta", "thinking": "Look "},
        {"type": "thinking_delta", "thinking": "first."},
        {"type": "signature_delta", "signature": ""},
        {"type": "text_delta", "text": "I will look."},
        {"type": "input_json_delta", "partial_json": '{"at":'},
        {"type": "input_json_delta", "partial_json": ' "sky"}'},
    ]
    assert told[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert told[-2]["usage"]["output_tokens"] == 6
    assert call.is_complete
    assert "[DONE]" not in call.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("reason", "stop_text", "word"),
    [
        (FinishReason.STOP, "", "end_turn"),
        (FinishReason.STOP, "END", "stop_sequence"),
        (FinishReason.LENGTH, "", "max_tokens"),
    ],
)
@on_a_loop
async def test_why_it_stopped(
    stream: bool, reason: FinishReason, stop_text: str, word: str
) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=stream, stop_sequences=["END", "STOP"])
    engine.say(request_id, "Hi")
    engine.finish(request_id, reason, stop_text=stop_text)
    await call.finished()
    answer = events(call)[-2]["delta"] if stream else json.loads(call.text)
    assert (answer["stop_reason"], answer["stop_sequence"]) == (word, stop_text or None)


@on_a_loop
async def test_a_call_that_was_cut_off_has_the_arguments_that_are_there() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine)
    engine.write(request_id, call=LOOK)
    engine.write(request_id, call=ToolCallDelta(index=0, arguments='{"at": "sky", "for": "clo'))
    engine.finish(request_id, FinishReason.LENGTH)
    await call.finished()
    (block,) = json.loads(call.text)["content"]
    assert block["input"] == {"at": "sky", "for": "clo"}


@on_a_loop
async def test_a_reply_of_nothing_is_a_message_without_blocks() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=True)
    engine.finish(request_id)
    await call.finished()
    assert [event["type"] for event in events(call)] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]


@on_a_loop
async def test_a_parked_stream_has_comments_and_pings_and_says_how_often_it_was_parked() -> None:
    engine = WatchedEngine(auto=False)
    engine.publish(parks=ParkUsage(budget_bytes=1 << 20))
    call, request_id = await begin(engine, timings=LIVELY, stream=True)
    engine.park(request_id)
    await call.until(lambda call: call.text.count("event: ping") >= 3)
    engine.restore(request_id, recomputed_tokens=3)
    engine.say(request_id, "Hi")
    usage = Usage(
        prompt_tokens=5,
        cached_tokens=0,
        completion_tokens=1,
        queued_s=0,
        prefill_s=0,
        decode_s=0,
        num_parks=1,
        num_recomputes=1,
    )
    del engine.alive[request_id]
    engine.emit(Finished(request_id=request_id, reason=FinishReason.STOP, usage=usage))
    await call.finished()
    assert call.text.count(": preempted\n\n") == 1
    assert ": resumed\n\n: recomputed\n\n" in call.text
    between_pings = call.text.split("event: ping")[2]  # by the first it may not have been parked
    assert between_pings.count(": preempt-keepalive\n\n") == 16
    told = [event for event in events(call) if event["type"] != "ping"]
    assert [event["type"] for event in told][:2] == ["message_start", "content_block_start"]
    assert told[-2]["preempt"] == {"parks": 1, "recomputes": 1}
    assert told[-2]["usage"]["input_tokens"] == 5


@on_a_loop
async def test_an_error_in_an_open_stream_is_an_event_and_the_end() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=True)
    engine.say(request_id, "Hel")
    await call.until(lambda call: call.writes)
    engine.fail(request_id, DeviceFailure("the device broke"))
    await call.finished()
    assert call.status == 200
    error = events(call)[-1]
    assert error["type"] == "error"
    assert error["error"] == {"type": "api_error", "message": "the device broke"}
    assert error["request_id"] == call.headers["request-id"]
    assert call.is_complete
    assert "message_stop" not in call.text


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_errors_before_the_stream_have_anthropics_words(stream: bool) -> None:
    engine = WatchedEngine(auto=False)
    for error, status, code, hint in (
        (
            ContextLengthExceeded("it has 9", needed_tokens=9, limit_tokens=5),
            400,
            "context_length_exceeded",
            "prompt is too long: 9 tokens > 5 maximum; it has 9",
        ),
        (WaitedTooLong("busy", retry_after_s=5.0), 503, "waited_too_long", "busy"),
    ):
        async with open_client(Refusing(error)) as client:
            answer = await client.post(MESSAGES, json={**BODY, "stream": stream})
        assert assert_error(answer, status, code) == hint
    assert answer.status_code == 529
    assert answer.headers["retry-after"] == "5"
    assert not engine.requests


class Refusing(FakeEngine):
    def __init__(self, error: ContextLengthExceeded | WaitedTooLong) -> None:
        super().__init__(auto=False)
        self._error = error

    def submit(self, request: Any) -> None:
        super().submit(request)
        self.fail(request.request_id, self._error)


@on_a_loop
async def test_other_paths_and_methods_below_are_worded_alike() -> None:
    async with open_client(FakeEngine()) as client:
        assert_error(await client.get(MESSAGES), 405, "method_not_allowed")
        assert_error(await client.post(f"{MESSAGES}/batches", json={}), 404, "unknown_path")
        doubled = await client.post(f"http://localhost/{MESSAGES}", json={})
        assert doubled.json()["type"] == "error"


@on_a_loop
async def test_tokens_are_counted_with_the_system_prompt() -> None:
    async with open_client(FakeEngine()) as client:
        plain = await client.post(COUNT, json=HELLO)
        more = await client.post(COUNT, json={**HELLO, "system": "Be very brief."})
    assert plain.json() == {"input_tokens": 2}
    assert more.json() == {"input_tokens": 5}
