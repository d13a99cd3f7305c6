"""The real engine on a tiny model: reasoning and calls come apart from the text, whatever happens on the way.

The model knows nothing, so a grammar makes it write calls; its own template says how.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    Grammar,
    GrammarKind,
    LoadModel,
    LoadOptions,
    Parked,
    Request,
    SamplingParams,
    TokenDelta,
    Tool,
    ToolCallDelta,
    ToolChoice,
)
from engine.errors import InvalidRequest
from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.disk_rig import ID, LONG, command_at, park, resumed, wait_on_disk
from fakes.listening import Ear, run_all, submit_together
from fakes.parking_rig import ask, load
from fakes.tiny_files import CHAT_TEMPLATE, write_tiny_gguf

CITY = Tool(
    name="get_weather",
    parameters='{"properties": {"c": {"type": "string", "pattern": "^[a-z]{50,60}$"}}, "required": ["c"]}',
)
NOW = Tool(name="now")
CALL_TAGS, THINK_TAGS = ("<tool_call>", "</tool_call>"), ("<think>", "</think>")
HERMES = CHAT_TEMPLATE + (
    "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}{# <tool_call></tool_call> #}"
)
THINKING = CHAT_TEMPLATE + "{% if enable_thinking %}<think>{% endif %}{# </think> #}"


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its template knows Hermes' calls, and its vocabulary has the tags."""
    folder = tmp_path_factory.mktemp("model")
    return write_tiny_gguf(folder, template=HERMES, controls=CALL_TAGS)


@pytest.fixture(scope="module")
def plain_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its template knows no tools."""
    return write_tiny_gguf(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def thinking_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its template begins the reasoning where it is told to."""
    folder = tmp_path_factory.mktemp("thinking")
    return write_tiny_gguf(folder, template=THINKING, controls=THINK_TAGS)


def chat(words: str = "hi", **fields: object) -> Chat:
    messages = (ChatMessage(role="user", content=words),)
    fields = {"tools": (CITY,), "tool_choice": ToolChoice.REQUIRED, **fields}
    return Chat(messages=messages, **fields)  # type: ignore[arg-type]


def asked(request_id: str, prompt: Chat, **fields: object) -> Request:
    fields = {
        "prompt": prompt,
        "max_tokens": 200,
        "ignore_eos": False,
        "tells_parts": True,
        "sampling": SamplingParams(temperature=1.0, seed=5),
        **fields,
    }
    return ask(request_id, **fields)


def one_call(request_id: str, **fields: object) -> Request:
    """A long call and no more."""
    return asked(request_id, chat(f"chat {request_id}", calls_in_parallel=False), **fields)


def deltas(ear: Ear, request_id: str) -> list[TokenDelta]:
    return [event for event in ear.of(request_id) if isinstance(event, TokenDelta)]


def calls(pieces: list[ToolCallDelta]) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each."""
    made: list[tuple[str, str, str]] = []
    for piece in pieces:
        if piece.name:
            made.append((piece.call_id, piece.name, ""))
        call_id, name, arguments = made[piece.index]
        made[piece.index] = (call_id, name, arguments + piece.arguments)
    return made


def called(ear: Ear, request_id: str) -> list[tuple[str, str, str]]:
    return calls([call for delta in deltas(ear, request_id) for call in delta.tool_calls])


def reason(ear: Ear, request_id: str) -> FinishReason:
    end = ear.wait_end(request_id)
    assert isinstance(end, Finished), end
    return end.reason


def assert_city(made: list[tuple[str, str, str]]) -> None:
    for _, name, arguments in made:
        assert name == "get_weather"
        assert 50 <= len(json.loads(arguments)["c"]) <= 60
    assert made


def test_calls_come_apart_from_the_text_in_pieces(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = run_all(engine, [one_call("r")])
    assert reason(ear, "r") is FinishReason.TOOL_CALLS
    assert_city(called(ear, "r"))
    assert ear.text("r") == ""
    pieces = [call for delta in deltas(ear, "r") for call in delta.tool_calls]
    assert len(pieces) > 20
    assert all((piece.call_id and piece.name) or piece.arguments for piece in pieces)


def test_a_model_without_tools_in_its_template_calls_them_too(
    engine: Engine, plain_path: Path
) -> None:
    load(engine, plain_path, pool_tokens=LONG)
    ear = run_all(engine, [one_call("r")])
    assert reason(ear, "r") is FinishReason.TOOL_CALLS
    assert_city(called(ear, "r"))
    assert ear.text("r") == ""


def test_a_reply_ends_with_the_one_call_that_it_may_make(engine: Engine, plain_path: Path) -> None:
    load(engine, plain_path, pool_tokens=LONG)
    free = chat(tools=(NOW,), calls_in_parallel=False)
    named = chat(tools=(CITY, NOW), tool_choice=ToolChoice.NAMED, tool_name="now")
    ear = run_all(engine, [asked("one", free), asked("named", named)])
    for request_id in ("one", "named"):
        ((_, name, arguments),) = called(ear, request_id)
        assert (name, json.loads(arguments)) == ("now", {})
        assert reason(ear, request_id) is FinishReason.TOOL_CALLS


def test_a_call_that_is_cut_short_ends_by_length_with_what_there_is(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = run_all(engine, [one_call("r", max_tokens=60)])
    assert reason(ear, "r") is FinishReason.LENGTH
    ((_, name, arguments),) = called(ear, "r")
    assert name == "get_weather"
    assert arguments.startswith("{")
    with pytest.raises(ValueError, match=r"."):
        json.loads(arguments)


def test_who_does_not_ask_for_parts_gets_the_text_as_it_was_written(
    engine: Engine, plain_path: Path
) -> None:
    load(engine, plain_path, pool_tokens=LONG)
    apart, whole = one_call("r"), one_call("r", tells_parts=False)
    told, raw = run_all(engine, [apart]), run_all(engine, [whole])
    assert told.tokens("r") == raw.tokens("r")[: len(told.tokens("r"))]
    assert json.loads(raw.text("r"))["tool_calls"][0]["name"] == "get_weather"
    assert reason(raw, "r") is FinishReason.STOP
    assert not called(raw, "r")


def test_reasoning_that_the_prompt_has_begun_comes_apart(
    engine: Engine, thinking_path: Path
) -> None:
    load(engine, thinking_path, pool_tokens=LONG)
    options = (("enable_thinking", True),)
    schema = Grammar(kind=GrammarKind.JSON_SCHEMA, source='{"enum": ["yes"]}')
    prompt = chat(tools=(), tool_choice=ToolChoice.AUTO, template_options=options)
    free = asked("free", prompt, max_tokens=20)
    bound = [
        asked(f"{n}", prompt, grammar=schema, sampling=SamplingParams(temperature=3.0, seed=n))
        for n in range(4)
    ]
    ear = run_all(engine, [free, *bound])
    assert "".join(delta.reasoning for delta in deltas(ear, "free"))
    for request in bound:
        if reason(ear, request.request_id) is FinishReason.STOP:
            assert ear.text(request.request_id) == '"yes"'
        else:
            assert ear.text(request.request_id) == ""
        assert "".join(delta.reasoning for delta in deltas(ear, request.request_id))


@pytest.mark.parametrize("template", ["plain", "hermes"])
def test_a_stop_string_counts_in_arguments_and_not_in_how_a_call_is_written(
    engine: Engine, plain_path: Path, model_path: Path, template: str
) -> None:
    load(engine, plain_path if template == "plain" else model_path, pool_tokens=LONG)
    stops = {"name": ("get_weather", "tool_call"), "inside": ('"c"', "never"), "end": ("}",)}
    ear = run_all(engine, [one_call(name, stop=stop) for name, stop in stops.items()])
    assert reason(ear, "name") is FinishReason.TOOL_CALLS
    whole = called(ear, "name")
    assert_city(whole)
    for name, stop in (("inside", '"c"'), ("end", "}")):
        end = ear.wait_end(name)
        assert isinstance(end, Finished)
        assert (end.reason, end.stop_text) == (FinishReason.STOP, stop)
        ((_, tool, arguments),) = called(ear, name)
        assert tool == "get_weather"
        assert stop not in arguments
        assert arguments.startswith("{")


def test_a_stop_string_cuts_what_a_grammar_makes(engine: Engine, plain_path: Path) -> None:
    load(engine, plain_path, pool_tokens=LONG)
    source = '{"type": "object", "properties": {"a": {"const": "one"}}, "required": ["a"]}'
    bound = Grammar(kind=GrammarKind.JSON_SCHEMA, source=source, param="response_format")
    request = asked("r", chat(tools=()), grammar=bound, stop=('"one',))
    ear = run_all(engine, [request])
    end = ear.wait_end("r")
    assert isinstance(end, Finished)
    assert (end.reason, end.stop_text) == (FinishReason.STOP, '"one')
    assert "".join(ear.text("r").split()) == '{"a":'


def test_wishes_that_exclude_each_other_are_refused(engine: Engine, plain_path: Path) -> None:
    load(engine, plain_path, pool_tokens=LONG)
    other = Grammar(kind=GrammarKind.JSON_SCHEMA, source="{}", param="response_format")
    ear = run_all(engine, [asked("r", chat(), grammar=other)])
    end = ear.wait_end("r")
    assert isinstance(end, Failed)
    assert isinstance(end.error, InvalidRequest)
    assert end.error.param == "response_format"


# --- what happens on the way


@pytest.mark.parametrize(
    "options",
    [{"test_preempt_every": 3}, {"test_preempt_every": 7, "test_preempt_copy": True}],
    ids=str,
)
def test_parks_change_no_part(engine: Engine, model_path: Path, options: dict[str, object]) -> None:
    requests = [one_call(f"r{n}") for n in range(4)]
    load(engine, model_path, pool_tokens=LONG)
    alone = {one.request_id: called(run_all(engine, [one]), one.request_id) for one in requests}
    load(engine, model_path, pool_tokens=288, **options)
    ear = Ear(engine)
    submit_together(engine, requests)
    for one in requests:
        ear.wait_end(one.request_id)
    assert {one.request_id: called(ear, one.request_id) for one in requests} == alone
    for made in alone.values():
        assert_city(made)
    assert any(isinstance(event, Parked) for event in ear.events)


def test_a_request_carried_to_another_load_goes_on_in_the_same_call(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    request = one_call(ID)
    expected = called(run_all(engine, [request]), ID)
    again = LoadModel(
        path=model_path,
        name="tiny",
        options=LoadOptions(pool_tokens=LONG, threads=1),
        carries_on=True,
    )
    command_at(engine, 40, again)
    ear = run_all(engine, [request])
    assert any(isinstance(event, Parked) for event in ear.of(ID))
    assert called(ear, ID) == expected
    assert reason(ear, ID) is FinishReason.TOOL_CALLS


def test_a_request_goes_on_from_disk_in_another_engine_in_the_same_call(
    engine: Engine, model_path: Path, tmp_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    request = one_call(ID, is_durable=True)
    expected = called(run_all(engine, [request]), ID)
    park(engine, request, at_token=40)
    wait_on_disk(engine, tmp_path)
    engine.shutdown()
    other = create_engine()
    try:
        load(other, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
        ear = run_all(other, [replace(request, resumes=True)])
        before = list(resumed(ear).tool_calls)
        assert calls(before)
        rest = [call for delta in deltas(ear, ID) for call in delta.tool_calls]
        assert calls(before + rest) == expected
        assert reason(ear, ID) is FinishReason.TOOL_CALLS
    finally:
        other.shutdown()
