"""What a client hears of a park: notices, keepalives, heartbeats, the record at the end, errors of waiting."""

from __future__ import annotations

import re

import httpx
import pytest

from engine.api import Finished, FinishReason, PromptProgress, Usage
from engine.errors import ContextLengthExceeded, EngineError, PoolFull, RestoreFailed, WaitedTooLong
from engine.runs import ParkUsage
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    BODIES,
    CHAT,
    HELLO,
    TEXT,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
    open_client,
)
from studio.server.sse import StreamTimings

PATHS = [CHAT, TEXT]
NEVER = 1000.0
PATIENT = StreamTimings(open_after_s=NEVER, keepalive_s=None, parked_keepalive_s=NEVER)
LIVELY = StreamTimings(open_after_s=NEVER, keepalive_s=NEVER, parked_keepalive_s=0.001)
DELTAS = {"x-layby-heartbeat": "delta"}
LEGAL_LINE = re.compile(
    r"|: ?(|(preempted|resumed|recomputed)( \d+)?|preempt-keepalive)|data: \S.*"
)


def a_parking_engine(*, budget_bytes: int = 1 << 30) -> WatchedEngine:
    engine = WatchedEngine(auto=False)
    engine.publish(parks=ParkUsage(budget_bytes=budget_bytes))
    return engine


async def begin(
    engine: WatchedEngine,
    path: str = CHAT,
    *,
    timings: StreamTimings = PATIENT,
    headers: dict[str, str] | None = None,
    **fields: object,
) -> tuple[AsgiCall, list[str]]:
    """A streamed call whose requests have reached the engine."""
    body = {**BODIES[path], "stream": True, **fields}
    call = AsgiCall(make_app(engine, timings=timings), path, body, headers)
    prompts = body.get("prompt")
    count = len(prompts) if isinstance(prompts, list) else int(str(fields.get("n", 1)))
    while len(engine.requests) < count:
        await call.pause()
    return call, list(engine.requests)


def ended(engine: WatchedEngine, request_id: str, *, parks: int, recomputes: int = 0) -> Finished:
    tokens = engine.alive.pop(request_id)
    usage = Usage(
        prompt_tokens=5,
        cached_tokens=0,
        completion_tokens=tokens,
        queued_s=0.0,
        prefill_s=0.0,
        decode_s=0.0,
        num_parks=parks,
        num_recomputes=recomputes,
    )
    return Finished(request_id=request_id, reason=FinishReason.STOP, usage=usage)


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_every_line_of_a_parked_stream_is_legal_and_notices_alternate(path: str) -> None:
    engine = a_parking_engine()
    call, (request_id,) = await begin(engine, path, timings=LIVELY)
    engine.park(request_id)
    await call.until(lambda call: call.text.count("keepalive") == 2)
    engine.park(request_id)  # an engine that says it twice is still told once
    engine.restore(request_id)
    engine.restore(request_id)
    engine.say(request_id, "Hello\n: preempted\n")
    engine.park(request_id)
    engine.restore(request_id, recomputed_tokens=7)
    engine.say(request_id, "!")
    engine.finish(request_id)
    await call.finished()
    assert all(LEGAL_LINE.fullmatch(line) for line in call.text.split("\n"))
    notices = [line for line in call.text.split("\n") if line[:3] in (": p", ": r")]
    told = [line for line in notices if line != ": preempt-keepalive"]
    assert told == [": preempted", ": resumed", ": preempted", ": resumed", ": recomputed"]
    assert call.writes[0] == ": preempted\n\n"
    assert ": resumed\n\n: recomputed\n\n" in call.writes


@on_a_loop
async def test_one_of_several_prompts_parked_keeps_the_stream_alive_without_an_index() -> None:
    engine = a_parking_engine()
    call, (first, second) = await begin(engine, TEXT, timings=LIVELY, prompt=["a", "b"])
    engine.say(first, "x")
    engine.park(second)
    await call.until(lambda call: ": preempt-keepalive\n\n" in call.text)
    assert ": preempted 1\n\n" in call.text
    engine.finish(first)
    engine.restore(second, recomputed_tokens=1)
    engine.finish(second)
    await call.finished()
    assert ": resumed 1\n\n: recomputed 1\n\n" in call.text


@on_a_loop
async def test_a_request_in_line_is_kept_alive_too_but_not_called_parked() -> None:
    engine = a_parking_engine()
    timings = StreamTimings(open_after_s=0.001, keepalive_s=NEVER, parked_keepalive_s=0.001)
    call, (request_id,) = await begin(engine, timings=timings)
    await call.until(lambda call: call.text.startswith(":\n\n:\n\n"))
    engine.say(request_id, "Hi")
    engine.finish(request_id)
    await call.finished()
    assert "preempt" not in call.text.split("data:")[0]


@on_a_loop
async def test_a_reply_that_is_read_again_after_a_context_shift_is_kept_alive() -> None:
    engine = a_parking_engine()
    call, (request_id,) = await begin(engine, timings=LIVELY)
    engine.say(request_id, "Hi")
    again = PromptProgress(request_id=request_id, computed_tokens=256, prompt_tokens=1000)
    engine.emit(again)
    await call.until(lambda call: call.text.endswith(":\n\n:\n\n"))
    engine.say(request_id, "!")
    engine.finish(request_id)
    await call.finished()
    assert call.text.rsplit(":\n\n", 1)[1].count("data: ") == 3  # the text, the end, [DONE]


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_a_client_may_ask_for_empty_deltas_instead_of_comments(path: str) -> None:
    engine = a_parking_engine()
    call, (request_id,) = await begin(engine, path, timings=LIVELY, headers=DELTAS)
    engine.park(request_id)
    await call.until(lambda call: len(call.chunks) >= 4)
    engine.restore(request_id, recomputed_tokens=3)
    engine.say(request_id, "Hi")
    engine.finish(request_id)
    await call.finished()
    lines = [line for line in call.text.split("\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    choices = [chunk["choices"][0] for chunk in call.chunks]
    if path == CHAT:
        assert choices[0]["delta"] == {"role": "assistant", "content": ""}
        assert choices[1]["delta"] == {"content": ""}
        assert "".join(choice["delta"].get("content", "") for choice in choices) == "Hi"
    else:
        assert "".join(choice["text"] for choice in choices) == "Hi"
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)


@on_a_loop
async def test_an_unknown_heartbeat_is_refused_before_anything_is_queued() -> None:
    engine = a_parking_engine()
    async with open_client(engine) as client:
        answer = await client.post(
            CHAT, json={**HELLO, "stream": True}, headers={"x-layby-heartbeat": "morse"}
        )
    words = assert_error(answer, 400, "invalid_value", "x-layby-heartbeat")
    assert "'morse'" in words
    assert "comment or delta" in words
    assert not engine.requests


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_the_last_chunk_has_the_parks_of_all_choices(path: str) -> None:
    engine = a_parking_engine()
    call, (first, second) = await begin(engine, path, n=2)
    engine.emit(ended(engine, second, parks=2, recomputes=1))
    engine.emit(ended(engine, first, parks=1))
    await call.finished()
    assert call.chunks[-1]["preempt"] == {"parks": 3, "recomputes": 1}
    assert call.chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert not any("preempt" in chunk for chunk in call.chunks[:-1])


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_the_usage_chunk_has_the_record_if_there_is_one(path: str) -> None:
    engine = a_parking_engine()
    call, (request_id,) = await begin(engine, path, stream_options={"include_usage": True})
    engine.emit(ended(engine, request_id, parks=1))
    await call.finished()
    assert call.chunks[-1]["preempt"] == {"parks": 1, "recomputes": 0}
    assert call.chunks[-1]["choices"] == []
    assert not any("preempt" in chunk for chunk in call.chunks[:-1])


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_a_whole_reply_has_the_record_and_no_word_of_the_wait(path: str) -> None:
    engine = a_parking_engine()
    call = AsgiCall(make_app(engine), path, BODIES[path])
    while not engine.requests:
        await call.pause()
    (request_id,) = engine.requests
    engine.park(request_id)
    engine.restore(request_id)
    engine.say(request_id, "Hi")
    engine.emit(ended(engine, request_id, parks=1))
    await call.finished()
    assert '"preempt":{"parks":1,"recomputes":0}' in call.text
    assert "preempted" not in call.text


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_server_that_cannot_park_says_nothing_of_parks(stream: bool) -> None:
    engine = FakeEngine()
    engine.publish(parks=ParkUsage(budget_bytes=0))
    call = AsgiCall(make_app(engine), CHAT, {**HELLO, "stream": stream})
    await call.finished()
    assert "preempt" not in call.text


class FailingEngine(FakeEngine):
    """Ends every request with one error, before any text."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(auto=False)
        self._error = error

    def submit(self, request: object) -> None:
        super().submit(request)
        self.fail(request.request_id, self._error)


POOL_FULL = PoolFull("Context size has been exceeded.", needed_tokens=9, limit_tokens=8)
TOO_LONG = ContextLengthExceeded("the prompt has 9 tokens", needed_tokens=9, limit_tokens=8)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (POOL_FULL, 500, None),
        (TOO_LONG, 400, None),
        (RestoreFailed("failed to restore the preempted sequence"), 500, None),
        (WaitedTooLong("it has waited 3 s", retry_after_s=2.2), 503, "3"),
        (WaitedTooLong("it has waited 0 s", retry_after_s=0.0), 503, "1"),
    ],
)
@on_a_loop
async def test_errors_of_waiting_have_their_status(
    error: EngineError, status: int, retry_after: str | None, stream: bool
) -> None:
    async with open_client(FailingEngine(error)) as client:
        answer: httpx.Response = await client.post(CHAT, json={**HELLO, "stream": stream})
    assert assert_error(answer, status, error.code) == str(error)
    assert answer.headers.get("retry-after") == retry_after


@on_a_loop
async def test_a_parked_stream_that_waited_too_long_ends_with_an_error_event() -> None:
    engine = a_parking_engine()
    call, (request_id,) = await begin(engine, max_wait=3)
    assert engine.requests[request_id].max_wait_s == 3
    engine.park(request_id)
    await call.until(lambda call: call.writes)
    engine.fail(request_id, WaitedTooLong("it has waited 3 s", retry_after_s=1.0))
    await call.finished()
    assert call.chunks[-1]["error"]["code"] == "waited_too_long"
    assert "[DONE]" not in call.text


@pytest.mark.parametrize("value", [-1, "3", 1e10])
@on_a_loop
async def test_a_max_wait_that_is_none_is_refused_by_name(value: object) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(CHAT, json={**HELLO, "max_wait": value})
    assert_error(answer, 400, "invalid_value", "max_wait")


@pytest.mark.parametrize(
    ("interval", "keepalive_s", "parked_s"),
    [(30, 30, 1.5), (1, 1, 1), (-1, None, 1.5), (0, None, 1.5)],
)
def test_the_ping_interval_caps_the_keepalive_of_parks_but_cannot_turn_it_off(
    interval: int, keepalive_s: float | None, parked_s: float
) -> None:
    timings = StreamTimings.of_ping_interval(interval)
    assert (timings.keepalive_s, timings.parked_keepalive_s) == (keepalive_s, parked_s)
