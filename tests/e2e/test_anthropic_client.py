"""The anthropic package against the real server on a free port, with a scripted engine behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import anthropic
import pytest
from pydantic import BaseModel

from engine.api import Request
from engine.errors import DeviceFailure, EngineError, WaitedTooLong
from fakes.calling_engine import CallingEngine
from fakes.http_driver import TIMEOUT_S
from studio.models.server_settings import ServerSettings
from studio.server.thread import ServerThread

KEY = "sk-local"
REPLY = "Hello there, friend."
ASK = [{"role": "user", "content": "Say hello."}]
TOOL = {
    "name": "look",
    "description": "Looks at the sky.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}},
}


@pytest.fixture
def engine() -> CallingEngine:
    return CallingEngine()


@pytest.fixture
def base_url(engine: CallingEngine) -> Iterator[str]:
    server = ServerThread(engine, ServerSettings(port=0, api_key=KEY))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def client(base_url: str) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=base_url, api_key=KEY, max_retries=0) as client:
        yield client


def test_whole(client: anthropic.Anthropic) -> None:
    message = client.messages.create(model="tiny", max_tokens=64, messages=ASK, system="Be brief.")
    (block,) = message.content
    assert block.type == "text"
    assert block.text == REPLY
    assert (message.role, message.model, message.stop_reason) == ("assistant", "tiny", "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 3)
    assert message._request_id


def test_streamed(client: anthropic.Anthropic) -> None:
    events = list(client.messages.create(model="tiny", max_tokens=64, messages=ASK, stream=True))
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    with client.messages.stream(model="tiny", max_tokens=64, messages=ASK) as stream:
        assert "".join(stream.text_stream) == REPLY
        message = stream.get_final_message()
    assert message.stop_reason == "end_turn"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (5, 3)


def test_async_client_whole_and_streamed(base_url: str) -> None:
    async def ask() -> tuple[str, str]:
        async with anthropic.AsyncAnthropic(
            base_url=base_url, api_key=KEY, max_retries=0
        ) as client:
            whole = await client.messages.create(model="tiny", max_tokens=64, messages=ASK)
            async with client.messages.stream(model="tiny", max_tokens=64, messages=ASK) as stream:
                return whole.content[0].text, await stream.get_final_text()

    assert asyncio.run(ask()) == (REPLY, REPLY)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_tool_is_called_and_its_result_comes_back(
    engine: CallingEngine, client: anthropic.Anthropic, streamed: bool
) -> None:
    fields = {"model": "tiny", "max_tokens": 64, "messages": ASK, "tools": [TOOL]}
    if streamed:
        with client.messages.stream(**fields) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**fields)
    assert message.stop_reason == "tool_use"
    thinking, text, use = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", "Look first.")
    assert (text.type, text.text) == ("text", "I will look.")
    assert (use.type, use.name, use.input) == ("tool_use", "look", {"at": "sky"})
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "clouds"}
    turns = [*ASK, message.to_param(), {"role": "user", "content": [result]}]
    last = client.messages.create(model="tiny", max_tokens=64, messages=turns)
    assert last.content[0].text == REPLY
    heard = [request.prompt for request in engine.requests.values()][-1].messages
    assert [turn.role for turn in heard] == ["user", "assistant", "tool"]
    assert (heard[1].reasoning, heard[1].content) == ("Look first.", "I will look.")
    assert heard[1].tool_calls[0].arguments == '{"at": "sky"}'
    assert (heard[2].tool_call_id, heard[2].content, heard[2].name) == ("call_1", "clouds", "look")


class Sky(BaseModel):
    """What a model may be asked to fill in."""

    clouds: int


def test_a_reply_is_parsed_as_the_class_that_was_asked_for(
    engine: CallingEngine, client: anthropic.Anthropic
) -> None:
    engine.reply = '{"clouds": 3}'
    parsed = client.messages.parse(
        model="tiny", max_tokens=64, messages=ASK, output_format=Sky
    ).parsed_output
    assert parsed == Sky(clouds=3)
    (request,) = engine.requests.values()
    assert request.grammar is not None
    assert "clouds" in request.grammar.source


def test_the_stop_sequence_is_told(engine: CallingEngine, client: anthropic.Anthropic) -> None:
    engine.auto = False
    found: list[anthropic.types.Message] = []

    def ask() -> None:
        found.append(
            client.messages.create(
                model="tiny", max_tokens=64, messages=ASK, stop_sequences=["END", "STOP"]
            )
        )

    asker = threading.Thread(target=ask)
    asker.start()
    (name,) = engine.wait_for_requests()
    assert engine.requests[name].stop == ("END", "STOP")
    engine.say(name, "Hi")
    engine.finish(name, stop_text="STOP")
    asker.join(TIMEOUT_S)
    assert (found[0].stop_reason, found[0].stop_sequence) == ("stop_sequence", "STOP")


def test_tokens_are_counted(client: anthropic.Anthropic) -> None:
    count = client.messages.count_tokens(model="tiny", messages=ASK, system="Be brief.")
    assert count.input_tokens == 4


def test_a_stream_outlasts_a_park(engine: CallingEngine, client: anthropic.Anthropic) -> None:
    engine.auto = False
    texts: list[str] = []

    def ask() -> None:
        with client.messages.stream(model="tiny", max_tokens=64, messages=ASK) as stream:
            texts.append(stream.get_final_text())

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
    engine: CallingEngine, client: anthropic.Anthropic
) -> None:
    engine.auto = False
    client.messages.create(model="tiny", max_tokens=64, messages=ASK, stream=True).close()
    assert engine.wait_for_aborts() == list(engine.requests)


def test_an_error_in_a_stream_is_raised(engine: CallingEngine, client: anthropic.Anthropic) -> None:
    engine.auto = False
    stream = client.messages.create(model="tiny", max_tokens=64, messages=ASK, stream=True)
    (name,) = engine.wait_for_requests()
    engine.say(name, "Hel")
    engine.fail(name, DeviceFailure("the device broke"))
    with pytest.raises(anthropic.APIStatusError, match="the device broke"):
        list(stream)


class Failing(CallingEngine):
    """Ends requests with an error, before any text."""

    error: EngineError = DeviceFailure("broken")

    def submit(self, request: Request) -> None:
        self.auto = False
        super().submit(request)
        self.fail(request.request_id, self.error)


def test_errors_are_the_clients_own_classes(base_url: str, client: anthropic.Anthropic) -> None:
    def ask(**fields: object) -> None:
        client.messages.create(**{"model": "tiny", "max_tokens": 4, "messages": ASK, **fields})

    with pytest.raises(anthropic.NotFoundError, match="gpt-9"):
        ask(model="gpt-9")
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        ask(extra_body={"temperature": -1})
    with pytest.raises(anthropic.BadRequestError, match="web_search"):
        ask(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with (
        anthropic.Anthropic(base_url=base_url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(anthropic.AuthenticationError) as refused,
    ):
        stranger.messages.create(model="tiny", max_tokens=4, messages=ASK)
    assert refused.value.body["error"]["type"] == "authentication_error"


def test_a_server_with_too_much_to_do_is_overloaded() -> None:
    engine = Failing()
    engine.error = WaitedTooLong("busy", retry_after_s=1)
    server = ServerThread(engine, ServerSettings(port=0))
    server.start()
    try:
        with (
            anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client,
            pytest.raises(anthropic.APIStatusError) as refused,
        ):
            client.messages.create(model="tiny", max_tokens=4, messages=ASK)
    finally:
        server.stop()
    assert refused.value.status_code == 529
    assert refused.value.body["error"]["type"] == "overloaded_error"


def test_models(client: anthropic.Anthropic) -> None:
    (listed,) = client.models.list(limit=1)
    assert client.models.retrieve("tiny") == listed
    assert (listed.type, listed.id, listed.display_name) == ("model", "tiny", "tiny")
    with pytest.raises(anthropic.NotFoundError, match="is not loaded"):
        client.models.retrieve("nope")
