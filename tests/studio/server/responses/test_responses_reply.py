"""OpenAI's response, in one piece and as events: items, numbers, usage, ends of every kind, parking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.api import Finished, FinishReason, TokenDelta, TokenLogprob, ToolCallDelta, Usage
from engine.errors import DeviceFailure
from engine.runs import ParkUsage
from fakes.fake_engine import FakeEngine
from fakes.http_driver import RESPONSES, AsgiCall, WatchedEngine, make_app, on_a_loop, open_client
from studio.server.responses.items import Thought, read_items
from studio.server.sse import StreamTimings

LIVELY = StreamTimings(open_after_s=0.001, keepalive_s=0.001, parked_keepalive_s=0.001)
LOOK = ToolCallDelta(index=0, call_id="call_1", name="look")
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}


async def begin(
    engine: WatchedEngine, *, timings: StreamTimings | None = None, **fields: Any
) -> tuple[AsgiCall, str]:
    call = AsgiCall(make_app(engine, timings=timings), RESPONSES, {"input": "Hi", **fields})
    while not engine.requests:
        await call.pause()
    (request_id,) = engine.requests
    return call, request_id


def events(call: AsgiCall) -> list[dict[str, Any]]:
    """All events; each is named by its type, and they are numbered."""
    found = []
    for block in call.text.split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            event = json.loads(data.removeprefix("data: "))
            assert name == f"event: {event['type']}"
            assert event["sequence_number"] == len(found)
            found.append(event)
    return found


def play(engine: WatchedEngine, request_id: str) -> None:
    """A reply that thinks, speaks and calls."""
    engine.start(request_id)
    engine.write(request_id, reasoning="Look ")
    engine.write(request_id, reasoning="first.")
    engine.write(request_id, text="I will look.")
    engine.write(request_id, call=LOOK)
    engine.write(request_id, call=ToolCallDelta(index=0, arguments='{"at":'))
    engine.write(request_id, call=ToolCallDelta(index=0, arguments=' "sky"}'))
    engine.finish(request_id, FinishReason.TOOL_CALLS)


def without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


ITEMS = [
    {
        "type": "reasoning",
        "status": "completed",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Look first."}],
    },
    {
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "I will look.", "annotations": [], "logprobs": []}
        ],
    },
    {
        "type": "function_call",
        "status": "completed",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"at": "sky"}',
    },
]


@on_a_loop
async def test_a_response_in_one_piece_tells_what_was_asked() -> None:
    asked = {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "max_output_tokens": 64,
        "metadata": {"k": "v"},
        "reasoning": {"effort": "low"},
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "look"},
        "store": False,
    }
    async with open_client(FakeEngine()) as client:
        answer = (await client.post(RESPONSES, json={"input": "Hi", **asked})).json()
    assert answer["id"].startswith("resp_")
    assert (answer["object"], answer["status"], answer["model"]) == (
        "response",
        "completed",
        "tiny",
    )
    (item,) = answer["output"]
    assert item["id"].startswith("msg_")
    assert item["content"][0]["text"] == "Hello there, friend."
    assert answer["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }
    for name, value in asked.items():
        if name not in ("tools", "reasoning"):
            assert answer[name] == value
    assert answer["reasoning"] == {"effort": "low", "summary": None}
    assert answer["tools"] == [{**TOOL, "description": "", "strict": False}]
    assert (answer["error"], answer["incomplete_details"]) == (None, None)
    assert (answer["top_p"], answer["truncation"]) == (0.95, "disabled")
    assert answer["text"]["format"] == {"type": "text"}


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_thoughts_text_and_calls_are_items_in_their_order(stream: bool) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=stream)
    play(engine, request_id)
    await call.finished()
    answer = events(call)[-1]["response"] if stream else json.loads(call.text)
    assert without_ids(answer["output"]) == ITEMS
    assert [item["id"].split("_")[0] for item in answer["output"]] == ["rs", "msg", "fc"]
    assert answer["status"] == "completed"
    assert answer["usage"]["output_tokens_details"] == {"reasoning_tokens": 2}


@on_a_loop
async def test_thoughts_can_be_handed_back_by_those_who_keep_none_that_they_can_read() -> None:
    engine = WatchedEngine(auto=False)
    asked = {"include": ["reasoning.encrypted_content"], "store": False}
    call, request_id = await begin(engine, **asked)
    engine.write(request_id, reasoning="Löök first.")
    engine.say(request_id, "Hi")
    engine.finish(request_id)
    await call.finished()
    thought = json.loads(call.text)["output"][0]
    assert "content" in thought
    back = {"type": "reasoning", "summary": [], "encrypted_content": thought["encrypted_content"]}
    for seal, text in ((back, "Löök first."), ({**back, "encrypted_content": "layby.?"}, "")):
        (item,) = read_items([seal])
        assert isinstance(item, Thought)
        assert item.text == text


@on_a_loop
async def test_a_stream_has_an_event_for_each_step_of_each_item() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=True)
    play(engine, request_id)
    await call.finished()
    told = events(call)
    assert [event["type"].removeprefix("response.") for event in told] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added"),
        *("reasoning_text.delta", "reasoning_text.delta"),
        *("reasoning_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done", "completed"),
    ]
    added = [event["item"] for event in told if event["type"] == "response.output_item.added"]
    assert [item["status"] for item in added] == ["in_progress"] * 3
    assert [item.get("content", item.get("arguments")) for item in added] == [[], [], ""]
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert done == told[-1]["response"]["output"]
    for event in told:
        if "item_id" in event:
            assert event["item_id"] == done[event["output_index"]]["id"]
    created = told[0]["response"]
    assert (created["status"], created["output"], created["usage"]) == ("in_progress", [], None)
    assert {event["response"]["id"] for event in told if "response" in event} == {created["id"]}
    assert call.is_complete
    assert "[DONE]" not in call.text


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_reply_that_was_cut_off_is_incomplete(stream: bool) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, stream=stream)
    engine.write(request_id, reasoning="Hm.")
    engine.say(request_id, "Hel")
    engine.finish(request_id, FinishReason.LENGTH)
    await call.finished()
    answer = json.loads(call.text) if not stream else events(call)[-1]["response"]
    if stream:
        assert events(call)[-1]["type"] == "response.incomplete"
        assert events(call)[-2]["item"]["status"] == "incomplete"
    assert (answer["status"], answer["completed_at"]) == ("incomplete", None)
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["status"] for item in answer["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_logprobs_come_with_the_text_if_they_were_asked_for(stream: bool) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(
        engine, stream=stream, include=["message.output_text.logprobs"], top_logprobs=1
    )
    other = TokenLogprob(token_id=2, text="Ho", token_bytes=b"Ho", logprob=-2.0)
    entry = TokenLogprob(token_id=1, text="Hi", token_bytes=b"Hi", logprob=-0.5, top=(other,))
    engine.emit(TokenDelta(request_id=request_id, text="Hi", token_ids=(1,), logprobs=(entry,)))
    engine.finish(request_id)
    await call.finished()
    answer = events(call)[-1]["response"] if stream else json.loads(call.text)
    (told,) = answer["output"][0]["content"][0]["logprobs"]
    assert (told["token"], told["logprob"], told["bytes"]) == ("Hi", -0.5, [72, 105])
    assert told["top_logprobs"][0]["token"] == "Ho"
    if stream:
        (delta,) = [e for e in events(call) if e["type"] == "response.output_text.delta"]
        assert delta["logprobs"] == [told]


@on_a_loop
async def test_a_sign_of_life_in_the_middle_takes_nothing_back() -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, timings=LIVELY, stream=True)
    engine.emit(TokenDelta(request_id=request_id, text="Once", token_ids=(1,)))
    await call.until(lambda call: '"Once"' in call.text)  # a sign of life may be written before it
    engine.park(request_id)
    told = call.text.count("event: response.in_progress")
    await call.until(lambda call: call.text.count("event: response.in_progress") > told)
    alive = [event for event in events(call) if event["type"] == "response.in_progress"][-1]
    (item,) = alive["response"]["output"]
    assert (item["status"], item["content"][0]["text"]) == ("in_progress", "Once")
    engine.restore(request_id)
    engine.finish(request_id)
    await call.finished()


@on_a_loop
async def test_a_parked_stream_has_comments_and_says_how_often_it_was_parked() -> None:
    engine = WatchedEngine(auto=False)
    engine.publish(parks=ParkUsage(budget_bytes=1 << 20))
    call, request_id = await begin(engine, timings=LIVELY, stream=True)
    engine.park(request_id)
    await call.until(lambda call: call.text.count("event: response.in_progress") >= 2)
    engine.restore(request_id)
    engine.say(request_id, "Hi")
    usage = Usage(
        prompt_tokens=5,
        cached_tokens=0,
        completion_tokens=1,
        queued_s=0,
        prefill_s=0,
        decode_s=0,
        num_parks=1,
    )
    del engine.alive[request_id]
    engine.emit(Finished(request_id=request_id, reason=FinishReason.STOP, usage=usage))
    await call.finished()
    assert call.text.count(": preempted\n\n") == call.text.count(": resumed\n\n") == 1
    assert ": preempt-keepalive\n\n" in call.text
    told = events(call)
    assert told[0]["type"] == "response.created"
    assert told[-1]["response"]["preempt"] == {"parks": 1, "recomputes": 0}


@pytest.mark.parametrize("has_spoken", [True, False])
@on_a_loop
async def test_an_error_in_an_open_stream_is_a_failed_response_and_the_end(
    has_spoken: bool,
) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, timings=None if has_spoken else LIVELY, stream=True)
    if has_spoken:
        engine.say(request_id, "Hel")
    await call.until(lambda call: call.writes)
    engine.fail(request_id, DeviceFailure("the device broke"))
    await call.finished()
    told = events(call)
    assert told[0]["type"] == "response.created"
    failed, error = told[-2:]
    assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
    assert failed["response"]["error"] == {
        "code": "device_failure",
        "message": "the device broke",
    }
    assert len(failed["response"]["output"]) == has_spoken
    assert (error["type"], error["code"]) == ("error", "device_failure")
    assert error["error"]["type"] == "server_error"
    assert call.is_complete


@pytest.mark.parametrize("has_spoken", [True, False])
@on_a_loop
async def test_a_response_stopped_from_elsewhere_has_failed(has_spoken: bool) -> None:
    engine = WatchedEngine(auto=False)
    call, request_id = await begin(engine, timings=LIVELY, stream=True)
    if has_spoken:
        engine.say(request_id, "Hel")
    await call.until(lambda call: call.writes)
    engine.finish(request_id, FinishReason.ABORTED)
    await call.finished()
    told = events(call)
    assert told[0]["type"] == "response.created"
    assert told[-2]["response"]["error"]["code"] == "request_cancelled"
