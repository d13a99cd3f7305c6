"""Ollama's routes: a line of JSON for each piece, its options, its lists of models, its errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Finished,
    FinishReason,
    GrammarKind,
    Infill,
    Text,
    TokenDelta,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from engine.errors import DeviceFailure
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.http_driver import (
    HELLO,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
    open_client,
)
from studio.server.ollama.models import shown
from studio.server.ollama.reply import OllamaReply, Telling
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd

USAGE = Usage(
    prompt_tokens=7,
    cached_tokens=2,
    completion_tokens=3,
    queued_s=0.5,
    prefill_s=1.0,
    decode_s=2.0,
    parked_s=4.0,
)
END = ReplyEnd(usages=(USAGE,))


def said(**fields: Any) -> TokenDelta:
    return TokenDelta(request_id="a", **{"text": "", "token_ids": (1,), **fields})


def finished(reason: FinishReason) -> Finished:
    return Finished(request_id="a", reason=reason, usage=USAGE)


CALL = {"id": "c", "function": {"index": 0, "name": "look", "arguments": {"a": 1}}}
DELTAS = (
    said(reasoning="Let me"),
    said(reasoning=" see"),
    said(text="It is "),
    said(text="raining"),
    said(tool_calls=(ToolCallDelta(index=0, call_id="c", name="look", arguments='{"a'),)),
    said(tool_calls=(ToolCallDelta(index=0, arguments='": 1}'),)),
)


def lines_of(call: AsgiCall) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call.text.splitlines()]


def test_a_chat_is_told_in_lines_and_a_call_whole() -> None:
    shape = OllamaReply("tiny", Telling.CHAT)
    lines = [line for delta in DELTAS for line in shape.delta(0, delta)]
    *rest, last = shape.closing(0, finished(FinishReason.TOOL_CALLS), END)
    messages = [line["message"] for line in (*lines, *rest)]
    assert [m.get("thinking", "") for m in messages] == ["Let me", " see", "", "", ""]
    assert [m["content"] for m in messages] == ["", "", "It is ", "raining", ""]
    assert messages[-1]["tool_calls"] == [CALL]
    assert all(line["done"] is False for line in (*lines, *rest))
    assert last["done"] is True
    assert last["done_reason"] == "stop"


def test_in_one_piece_it_is_the_same() -> None:
    reply = ReplyParts()
    for delta in DELTAS:
        reply.add(delta)
    reply.finished = finished(FinishReason.LENGTH)
    whole = OllamaReply("tiny", Telling.CHAT).whole([reply], END)
    assert whole["message"] == {
        "role": "assistant",
        "content": "It is raining",
        "thinking": "Let me see",
        "tool_calls": [CALL],
    }
    assert (whole["done"], whole["done_reason"]) == (True, "length")
    assert whole["created_at"].endswith("Z")


def test_durations_are_nanoseconds_and_waiting_counts_in_the_total_alone() -> None:
    (last,) = OllamaReply("tiny", Telling.GENERATE).closing(0, finished(FinishReason.STOP), END)
    assert last["total_duration"] == 7_500_000_000
    assert (last["prompt_eval_count"], last["prompt_eval_duration"]) == (7, 1_000_000_000)
    assert (last["eval_count"], last["eval_duration"]) == (3, 2_000_000_000)


def test_log_probabilities_go_with_the_line_of_their_token() -> None:
    token = TokenLogprob(token_id=1, text="x", token_bytes=b"x", logprob=-0.5)
    shape = OllamaReply("tiny", Telling.GENERATE)
    (line,) = shape.delta(0, said(text="x", logprobs=(token,)))
    assert line["response"] == "x"
    assert [each["logprob"] for each in line["logprobs"]] == [-0.5]
    (bare,) = shape.delta(0, said(logprobs=(token,)))
    assert (bare["response"], len(bare["logprobs"])) == ("", 1)


@on_a_loop
async def test_streams_are_the_rule_and_lines_of_json() -> None:
    call = AsgiCall(make_app(FakeEngine()), OLLAMA_CHAT, HELLO)
    await call.finished()
    assert call.headers["content-type"] == "application/x-ndjson"
    *pieces, last = lines_of(call)
    assert "".join(line["message"]["content"] for line in pieces) == "Hello there, friend."
    assert last["done"] is True
    assert last["message"] == {"role": "assistant", "content": ""}


@on_a_loop
async def test_an_error_in_a_stream_is_its_last_line() -> None:
    engine = WatchedEngine(auto=False)
    call = AsgiCall(make_app(engine), OLLAMA_GENERATE, {"prompt": "a"})
    await call.until(lambda _: engine.requests)
    (request_id,) = engine.requests
    engine.say(request_id, "Well")
    await call.until(lambda call: call.writes)
    engine.fail(request_id, DeviceFailure("broken"))
    await call.finished()
    *pieces, last = lines_of(call)
    assert "".join(piece["response"] for piece in pieces) == "Well"
    assert last == {"error": "broken"}


@on_a_loop
async def test_options_reach_the_engine_as_they_are_meant() -> None:
    engine = FakeEngine()
    body = {
        **HELLO,
        "stream": False,
        "think": False,
        "format": {"type": "object"},
        "keep_alive": "5m",
        "options": {
            "num_predict": 7, "temperature": 0, "top_k": 5, "top_p": 0.5, "min_p": 0.1, "seed": 3,
            "stop": ["x", ""], "repeat_penalty": 1.1, "num_ctx": 4096, "num_gpu": 0, "repeat_last_n": 9,
        },
    }  # fmt: skip
    async with open_client(engine) as client:
        assert (await client.post(OLLAMA_CHAT, json=body)).status_code == 200
    (request,) = engine.requests.values()
    sampling = request.sampling
    assert (request.max_tokens, request.stop, request.tells_parts) == (7, ("x",), True)
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (
        0,
        5,
        0.5,
        0.1,
    )
    assert (sampling.seed, sampling.repetition_penalty, sampling.penalty_last_n) == (3, 1.1, 9)
    assert request.grammar is not None
    assert (request.grammar.kind, request.grammar.source) == (
        GrammarKind.JSON_SCHEMA,
        '{"type": "object"}',
    )
    assert isinstance(request.prompt, Chat)
    assert ("enable_thinking", False) in request.prompt.template_options


@on_a_loop
async def test_calls_and_their_results_become_turns() -> None:
    engine = FakeEngine()
    call = {"function": {"name": "look", "arguments": {"a": 1}}}
    body = {
        "messages": [
            {"role": "user", "content": "See?"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "content": "rain", "tool_name": "look"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
    }
    async with open_client(engine) as client:
        assert (await client.post(OLLAMA_CHAT, json=body)).status_code == 200
    (request,) = engine.requests.values()
    assert isinstance(request.prompt, Chat)
    _, asked, told = request.prompt.messages
    assert (asked.tool_calls[0].name, asked.tool_calls[0].arguments) == ("look", '{"a": 1}')
    assert (told.name, told.tool_call_id) == ("look", asked.tool_calls[0].call_id)
    assert [tool.name for tool in request.prompt.tools] == ["look"]


@on_a_loop
async def test_results_find_their_calls_by_id() -> None:
    engine = FakeEngine()
    calls = [{"id": f"c{n}", "function": {"name": "look", "arguments": {}}} for n in range(2)]
    results = [{"role": "tool", "content": f"r{n}", "tool_call_id": f"c{n}"} for n in (0, 1)]
    body = {
        "messages": [HELLO["messages"][0], {"role": "assistant", "tool_calls": calls}, *results]
    }
    async with open_client(engine) as client:
        assert (await client.post(OLLAMA_CHAT, json=body)).status_code == 200
    (request,) = engine.requests.values()
    assert isinstance(request.prompt, Chat)
    _, asked, *told = request.prompt.messages
    assert [call.call_id for call in asked.tool_calls] == ["c0", "c1"]
    assert [(each.name, each.tool_call_id) for each in told] == [("look", "c0"), ("look", "c1")]


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"prompt": "a", "raw": True}, Text(text="a", reads_control=True)),
        ({"prompt": "a", "suffix": "b"}, Infill(before="a", after="b")),
        (
            {"prompt": "a", "system": "s"},
            Chat(
                messages=(
                    ChatMessage(role="system", content="s"),
                    ChatMessage(role="user", content="a"),
                )
            ),
        ),
    ],
)
@on_a_loop
async def test_a_prompt_is_a_turn_a_gap_or_taken_as_it_is(
    body: dict[str, Any], prompt: Any
) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        assert (await client.post(OLLAMA_GENERATE, json=body)).status_code == 200
    (request,) = engine.requests.values()
    assert request.prompt == prompt


@pytest.mark.parametrize("path", [OLLAMA_CHAT, OLLAMA_GENERATE])
@on_a_loop
async def test_without_a_prompt_the_model_is_loaded_and_that_is_all(path: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = (await client.post(path, json={"model": "tiny:latest"})).json()
    assert (answer["done"], answer["done_reason"], answer["model"]) == (True, "load", "tiny")
    assert not engine.requests


@on_a_loop
async def test_the_loaded_model_is_listed_running_and_shown() -> None:
    async with open_client(FakeEngine()) as client:
        (listed,) = (await client.get("/api/tags")).json()["models"]
        (running,) = (await client.get("/api/ps")).json()["models"]
        described = (await client.post("/api/show", json={"model": "tiny"})).json()
        version = (await client.get("/api/version")).json()
    assert listed["name"] == listed["model"] == running["name"] == "tiny"
    assert listed["digest"] == running["digest"]
    assert listed["size"] == 4000
    assert listed["details"] == {
        "parent_model": "",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "1K",
        "quantization_level": "F32",
    }
    assert running["context_length"] == 2048
    assert described["model_info"]["llama.context_length"] == 2048
    assert described["template"] == "{{ messages }}"
    assert version["version"].count(".") == 2


@pytest.mark.parametrize(
    ("facts", "capabilities"),
    [
        ({"embedding_size": 0}, ["completion", "tools"]),
        ({"embedding_size": 0, "thinks": True}, ["completion", "tools", "thinking"]),
        ({"embedding_size": 8}, ["embedding"]),
    ],
)
def test_every_model_that_writes_is_offered_tools(
    facts: dict[str, Any], capabilities: list[str]
) -> None:
    assert shown(replace(TINY_MODEL, **facts))["capabilities"] == capabilities


@on_a_loop
async def test_without_a_model_the_lists_are_empty() -> None:
    async with open_client(FakeEngine(ready=False)) as client:
        assert (await client.get("/api/tags")).json() == {"models": []}
        assert (await client.get("/api/ps")).json() == {"models": []}


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        ("POST", "/api/pull", "layby models get"),
        ("POST", "/api/push", "sends nothing"),
        ("POST", "/api/create", "layby models add"),
        ("POST", "/api/copy", "layby models add"),
        ("DELETE", "/api/delete", "layby models remove"),
    ],
)
@on_a_loop
async def test_changes_of_the_library_are_refused_with_what_to_do_instead(
    method: str, path: str, hint: str
) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.request(method, path, json={"model": "x"})
    message = assert_error(answer, 403, "not_supported")
    assert path in message
    assert hint in message


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (OLLAMA_CHAT, {"messages": "hi"}, "messages"),
        (OLLAMA_CHAT, {"messages": [{"role": "wizard"}]}, "messages"),
        (OLLAMA_CHAT, {"messages": [{"role": "user", "content": 5}]}, "messages"),
        (OLLAMA_CHAT, {"messages": [{"role": "user", "images": ["aGk="]}]}, "messages"),
        (OLLAMA_CHAT, {"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages"),
        (OLLAMA_CHAT, {**HELLO, "format": "xml"}, "format"),
        (OLLAMA_CHAT, {**HELLO, "think": "hard"}, "think"),
        (OLLAMA_CHAT, {**HELLO, "options": {"temperature": "hot"}}, "options.temperature"),
        (OLLAMA_CHAT, {**HELLO, "options": {"mirostat": 1}}, "options.mirostat"),
        (OLLAMA_CHAT, {"options": {"stop": ["a"] * 17}}, "options.stop"),
        (OLLAMA_CHAT, {**HELLO, "tools": [{}]}, "tools"),
        (OLLAMA_GENERATE, {"prompt": "a", "images": ["aGk="]}, "images"),
        (OLLAMA_GENERATE, {"prompt": "a", "context": [1]}, "context"),
        (OLLAMA_GENERATE, {"prompt": "a", "template": "x"}, "template"),
        (OLLAMA_GENERATE, {"prompt": "a", "suffix": "b", "system": "s"}, "system"),
        ("/api/embed", {"input": ["a", 1]}, "input"),
        ("/api/embed", {"input": "a", "dimensions": 4}, "dimensions"),
        ("/api/embeddings", {}, "prompt"),
    ],
)
@on_a_loop
async def test_what_is_wrong_is_named(path: str, body: dict[str, Any], param: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        message = assert_error(await client.post(path, json=body), 400, "invalid_value")
    assert param in message
    assert not engine.requests
