"""The openai package against the real server on a free port, with a scripted engine behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import openai
import pytest

from fakes.http_driver import TIMEOUT_S, WatchedEngine
from studio.models.server_settings import ServerSettings
from studio.server.thread import ServerThread

KEY = "sk-local"
ASK = [{"role": "user", "content": "Say hello."}]
REPLY = "Hello there, friend."


@pytest.fixture
def engine() -> WatchedEngine:
    return WatchedEngine()


@pytest.fixture
def base_url(engine: WatchedEngine) -> Iterator[str]:
    server = ServerThread(engine, ServerSettings(port=0, api_key=KEY))
    server.start()
    yield f"{server.url}/v1"
    server.stop()


@pytest.fixture
def client(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
        yield client


def test_models(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.created, model.owned_by) == ("tiny", 1_700_000_000, "layby")
    assert client.models.retrieve("tiny").id == "tiny"


def test_chat_whole(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=ASK, temperature=0, max_tokens=9)
    assert answer.choices[0].message.content == REPLY
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 8
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 0


def test_chat_streamed(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="tiny", messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == REPLY
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3


def test_several_choices(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="tiny", messages=ASK, n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    texts = ["", "", ""]
    for chunk in client.chat.completions.create(model="tiny", messages=ASK, n=3, stream=True):
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [REPLY] * 3


def test_completions_whole_and_streamed(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="tiny", prompt=["a", "b"])
    assert [choice.text for choice in answer.choices] == [REPLY, REPLY]
    stream = client.completions.create(model="tiny", prompt="a", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == REPLY


def test_async_client_whole_and_streamed(base_url: str) -> None:
    async def ask() -> tuple[str | None, str]:
        async with openai.AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
            whole = await client.chat.completions.create(model="tiny", messages=ASK)
            stream = await client.chat.completions.create(model="tiny", messages=ASK, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            return whole.choices[0].message.content, text

    assert asyncio.run(ask()) == (REPLY, REPLY)


def test_a_stream_and_a_whole_reply_outlast_a_park_of_more_than_two_seconds(
    engine: WatchedEngine, client: openai.OpenAI
) -> None:
    engine.auto = False
    texts: dict[str, str | None] = {}

    def ask_whole() -> None:
        answer = client.chat.completions.create(model="tiny", messages=ASK)
        texts["whole"] = answer.choices[0].message.content

    def ask_streamed() -> None:
        stream = client.chat.completions.create(model="tiny", messages=ASK, stream=True)
        parts = [chunk.choices[0].delta.content or "" for chunk in stream]
        texts["streamed"] = "".join(parts)

    askers = [threading.Thread(target=ask) for ask in (ask_whole, ask_streamed)]
    for asker in askers:
        asker.start()
    ids = engine.wait_for_requests(2)

    def come_back() -> None:
        for request_id in ids:
            engine.restore(request_id)
            engine.say(request_id, " friend.")
            engine.finish(request_id)

    for request_id in ids:
        engine.start(request_id)
        engine.say(request_id, "Hello there,")
        engine.park(request_id)
    return_trip = threading.Timer(2.3, come_back)
    return_trip.start()
    for thread in (return_trip, *askers):
        thread.join(TIMEOUT_S)
    assert texts == {"whole": REPLY, "streamed": REPLY}


def test_a_stream_that_is_closed_early_is_aborted(
    engine: WatchedEngine, client: openai.OpenAI
) -> None:
    engine.auto = False
    client.chat.completions.create(model="tiny", messages=ASK, stream=True).close()
    assert engine.wait_for_aborts() == list(engine.requests)


def test_errors_are_the_clients_own_classes(base_url: str, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="gpt-9", messages=ASK)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="tiny", messages=ASK, temperature=-1)
    assert (bad.value.code, bad.value.param) == ("invalid_value", "temperature")
    with (
        openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()
