"""The openai package's responses against the real server on a free port, with a scripted engine behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import openai
import pytest
from pydantic import BaseModel

from engine.api import GrammarKind
from engine.errors import DeviceFailure
from fakes.calling_engine import CallingEngine
from fakes.http_driver import TIMEOUT_S
from studio.models.server_settings import ServerSettings
from studio.server.thread import ServerThread

KEY = "sk-local"
REPLY = "Hello there, friend."
TOOL = {
    "type": "function",
    "name": "look",
    "description": "Looks at the sky.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}


@pytest.fixture
def engine() -> CallingEngine:
    return CallingEngine()


@pytest.fixture
def base_url(engine: CallingEngine) -> Iterator[str]:
    server = ServerThread(engine, ServerSettings(port=0, api_key=KEY))
    server.start()
    yield f"{server.url}/v1"
    server.stop()


@pytest.fixture
def client(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
        yield client


def test_whole(client: openai.OpenAI) -> None:
    response = client.responses.create(model="tiny", input="Say hello.", instructions="Be brief.")
    assert response.output_text == REPLY
    assert (response.status, response.model, response.instructions) == (
        "completed",
        "tiny",
        "Be brief.",
    )
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 3)
    assert response.usage.output_tokens_details.reasoning_tokens == 0


def test_streamed(client: openai.OpenAI) -> None:
    events = list(client.responses.create(model="tiny", input="Say hello.", stream=True))
    assert [event.type for event in events][:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == REPLY
    with client.responses.stream(model="tiny", input="Say hello.") as stream:
        snapshots = [
            event.snapshot for event in stream if event.type == "response.output_text.delta"
        ]
        assert snapshots[-1] == REPLY
        assert stream.get_final_response().output_text == REPLY


def test_async_client_whole_and_streamed(base_url: str) -> None:
    async def ask() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
            whole = await client.responses.create(model="tiny", input="Say hello.")
            async with client.responses.stream(model="tiny", input="Say hello.") as stream:
                final = await stream.get_final_response()
            return whole.output_text, final.output_text

    assert asyncio.run(ask()) == (REPLY, REPLY)


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_tool_is_called_and_its_result_comes_back(
    engine: CallingEngine, client: openai.OpenAI, streamed: bool, goes_on: bool
) -> None:
    asked = {"role": "user", "content": "What is up?"}
    fields = {"model": "tiny", "tools": [TOOL]}
    if streamed:
        with client.responses.stream(input=[asked], **fields) as stream:
            response = stream.get_final_response()
    else:
        response = client.responses.create(input=[asked], **fields)
    thoughts, said, call = response.output
    assert (thoughts.type, thoughts.content[0].text) == ("reasoning", "Look first.")
    assert (said.type, said.content[0].text) == ("message", "I will look.")
    assert (call.type, call.name, call.arguments) == ("function_call", "look", '{"at": "sky"}')
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "clouds"}
    if goes_on:
        last = client.responses.create(input=[result], previous_response_id=response.id, **fields)
    else:
        turns = [asked, *(item.model_dump(exclude_none=True) for item in response.output), result]
        last = client.responses.create(input=turns, store=False, **fields)
    assert last.output_text == REPLY
    heard = list(engine.requests.values())[-1].prompt.messages
    assert [turn.role for turn in heard] == ["user", "assistant", "tool"]
    assert (heard[1].reasoning, heard[1].content) == ("Look first.", "I will look.")
    assert (heard[2].tool_call_id, heard[2].content, heard[2].name) == ("call_1", "clouds", "look")


class Sky(BaseModel):
    """What a model may be asked to fill in."""

    clouds: int


def test_a_reply_is_parsed_as_the_class_that_was_asked_for(
    engine: CallingEngine, client: openai.OpenAI
) -> None:
    engine.reply = '{"clouds": 3}'
    whole = client.responses.parse(model="tiny", input="How many?", text_format=Sky)
    assert whole.output_parsed == Sky(clouds=3)
    with client.responses.stream(model="tiny", input="How many?", text_format=Sky) as stream:
        assert stream.get_final_response().output_parsed == Sky(clouds=3)
    for request in engine.requests.values():
        assert request.grammar is not None
        assert request.grammar.kind is GrammarKind.JSON_SCHEMA
        assert "clouds" in request.grammar.source
    assert whole.text is not None
    assert whole.text.format is not None
    assert whole.text.format.type == "json_schema"


def test_kept_responses_are_shown_listed_and_deleted(client: openai.OpenAI) -> None:
    response = client.responses.create(model="tiny", input="Say hello.", metadata={"k": "v"})
    shown = client.responses.retrieve(response.id)
    assert (shown.output_text, shown.metadata) == (REPLY, {"k": "v"})
    (item,) = client.responses.input_items.list(response.id).data
    assert (item.role, item.content[0].text) == ("user", "Say hello.")
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    with pytest.raises(openai.BadRequestError) as unknown:
        client.responses.create(model="tiny", input="x", previous_response_id=response.id)
    assert unknown.value.code == "previous_response_not_found"


def test_tokens_are_counted(client: openai.OpenAI) -> None:
    body = {"model": "tiny", "input": "Say hello.", "instructions": "Be brief."}
    assert client.post("/responses/input_tokens", cast_to=dict, body=body)["input_tokens"] == 4


def test_a_stream_outlasts_a_park(engine: CallingEngine, client: openai.OpenAI) -> None:
    engine.auto = False
    texts: list[str] = []

    def ask() -> None:
        with client.responses.stream(model="tiny", input="Say hello.") as stream:
            texts.append(stream.get_final_response().output_text)

    asker = threading.Thread(target=ask)
    asker.start()
    (name,) = engine.wait_for_requests()

    def come_back() -> None:
        engine.restore(name)
        engine.say(name, " friend.")
        engine.finish(name)

    engine.start(name)
    engine.say(name, "Hello there,")
    engine.park(name)
    return_trip = threading.Timer(2.3, come_back)
    return_trip.start()
    for thread in (return_trip, asker):
        thread.join(TIMEOUT_S)
    assert texts == [REPLY]


def test_a_stream_that_is_closed_early_is_aborted(
    engine: CallingEngine, client: openai.OpenAI
) -> None:
    engine.auto = False
    client.responses.create(model="tiny", input="Say hello.", stream=True).close()
    assert engine.wait_for_aborts() == list(engine.requests)


def test_an_error_in_a_stream_is_told_and_raised(
    engine: CallingEngine, client: openai.OpenAI
) -> None:
    engine.auto = False
    stream = client.responses.create(model="tiny", input="Say hello.", stream=True)
    (name,) = engine.wait_for_requests()
    engine.say(name, "Hel")
    engine.fail(name, DeviceFailure("the device broke"))
    seen: list[str] = []

    def hear() -> None:
        for event in stream:
            seen.append(event.type)

    with pytest.raises(openai.APIError, match="the device broke"):
        hear()
    assert seen[-1] == "response.failed"


def test_errors_are_the_clients_own_classes(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.responses.create(model="gpt-9", input="x")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        client.responses.create(model="tiny", input="x", tools=[{"type": "web_search"}])
    assert bad.value.param == "tools"
