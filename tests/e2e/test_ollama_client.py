"""The ollama package against the real server on a free port, with a real engine on tiny models behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gguf
import ollama
import pytest

from engine.api import Parked, PromptProgress
from engine.factory import create_engine
from engine.runs import ParkNow, ResumeNext
from engine.runtime.engine import Engine
from fakes.http_driver import TIMEOUT_S, WatchedEngine
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf
from studio.models.server_settings import ServerSettings
from studio.server.thread import ServerThread

ASK = [{"role": "user", "content": "Say hello."}]
GREEDY = {"temperature": 0, "num_predict": 6}
REPLY = "Hello there, friend."


@contextmanager
def serving(engine: Engine | WatchedEngine) -> Iterator[ollama.Client]:
    """A client of a server with this engine."""
    server = ServerThread(engine, ServerSettings(port=0))
    server.start()
    try:
        with ollama.Client(host=server.url, trust_env=False) as client:
            yield client
    finally:
        server.stop()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    path = write_tiny_gguf(tmp_path_factory.mktemp("model"))
    load(engine, path, pool_tokens=1024, batch_tokens=64)
    yield engine
    engine.shutdown()


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[ollama.Client]:
    with serving(engine) as client:
        yield client


@pytest.fixture
def scripted() -> Iterator[tuple[WatchedEngine, ollama.Client]]:
    engine = WatchedEngine(auto=False)
    with serving(engine) as client:
        yield engine, client


def test_the_model_is_listed_running_and_shown(client: ollama.Client) -> None:
    (listed,) = client.list().models
    (running,) = client.ps().models
    shown = client.show("tiny")
    assert listed.model == running.model == "tiny"
    assert listed.digest == running.digest
    assert listed.size is not None
    assert listed.size > 0
    assert listed.details is not None
    assert listed.details.family == "llama"
    assert running.context_length == 512
    assert shown.capabilities == ["completion", "tools"]
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == 512


def test_chat_whole_and_streamed_say_the_same(client: ollama.Client) -> None:
    whole = client.chat("tiny:latest", ASK, options=GREEDY)
    assert (whole.done, whole.done_reason, whole.eval_count) == (True, "length", 6)
    assert whole.message.role == "assistant"
    assert whole.prompt_eval_count is not None
    assert whole.prompt_eval_count > 0
    assert whole.total_duration is not None
    assert whole.total_duration > 0
    *pieces, last = client.chat("tiny", ASK, options=GREEDY, stream=True)
    text = "".join(piece.message.content or "" for piece in pieces)
    assert text == whole.message.content
    assert (last.done, last.done_reason, last.eval_count) == (True, "length", 6)


def test_generate_whole_streamed_raw_and_empty(client: ollama.Client) -> None:
    whole = client.generate("tiny", "hello", options=GREEDY)
    pieces = client.generate("tiny", "hello", options=GREEDY, stream=True)
    assert "".join(piece.response or "" for piece in pieces) == whole.response
    raw = client.generate("tiny", "hello", raw=True, options=GREEDY)
    assert raw.prompt_eval_count is not None
    assert whole.prompt_eval_count is not None
    assert raw.prompt_eval_count < whole.prompt_eval_count, "no template around it"
    assert client.generate("tiny").done_reason == "load"


def test_log_probabilities_are_told(client: ollama.Client) -> None:
    reply = client.chat("tiny", ASK, options=GREEDY, logprobs=True, top_logprobs=2)
    assert reply.logprobs is not None
    assert len(reply.logprobs) == 6
    assert all(len(token.top_logprobs or ()) == 2 for token in reply.logprobs)


def test_many_at_once(engine: Engine, client: ollama.Client) -> None:
    alone = client.chat("tiny", ASK, options=GREEDY).message.content

    async def ask_all() -> list[str | None]:
        host = str(client._client.base_url)
        async with ollama.AsyncClient(host=host, trust_env=False) as asynchronous:
            asked = [asynchronous.chat("tiny", ASK, options=GREEDY) for _ in range(8)]
            return [reply.message.content for reply in await asyncio.gather(*asked)]

    assert asyncio.run(ask_all()) == [alone] * 8


def test_a_parked_stream_says_the_same(engine: Engine, client: ollama.Client) -> None:
    options = {"temperature": 0, "num_predict": 40}
    alone = client.chat("tiny", ASK, options=options).message.content
    done: set[type] = set()

    def steer(events: tuple[object, ...]) -> None:
        for event in events:
            if isinstance(event, PromptProgress | Parked) and type(event) not in done:
                done.add(type(event))
                command = ResumeNext if isinstance(event, Parked) else ParkNow
                engine.control(command(request_id=event.request_id))

    stop = engine.subscribe(steer)
    long = [{"role": "user", "content": "Say hello. " * 40}]
    pieces = list(client.chat("tiny", long, options=options, stream=True))
    stop()
    assert Parked in done
    text = "".join(piece.message.content or "" for piece in pieces)
    assert text == client.chat("tiny", long, options=options).message.content
    assert pieces[-1].done
    assert client.chat("tiny", ASK, options=options).message.content == alone


def test_signs_of_life_in_a_long_silence_are_lines_that_say_nothing(
    scripted: tuple[WatchedEngine, ollama.Client],
) -> None:
    engine, client = scripted
    heard: list[ollama.ChatResponse] = []
    is_first = threading.Event()

    def listen() -> None:
        for piece in client.chat("tiny", ASK, stream=True):
            heard.append(piece)
            is_first.set()

    listener = threading.Thread(target=listen)
    listener.start()
    (request_id,) = engine.wait_for_requests()
    assert is_first.wait(TIMEOUT_S), "a sign of life"
    engine.start(request_id)
    engine.say(request_id, REPLY)
    engine.finish(request_id)
    listener.join(TIMEOUT_S)
    assert "".join(piece.message.content or "" for piece in heard) == REPLY
    assert heard[0].message.content == ""
    assert [piece.done for piece in heard] == [False] * (len(heard) - 1) + [True]


def test_errors_have_their_status_and_words(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as unknown:
        client.chat("gpt-9", ASK)
    assert unknown.value.status_code == 404
    assert "gpt-9" in unknown.value.error
    with pytest.raises(ollama.ResponseError, match="layby models get"):
        client.pull("tiny")
    with pytest.raises(ollama.ResponseError, match="gives no embeddings"):
        client.embed("tiny", "hello")
    with pytest.raises(ollama.ResponseError, match=r"temperature.*'hot'"):
        client.chat("tiny", ASK, options={"temperature": "hot"})


def test_embeddings(tmp_path: Path) -> None:
    engine = create_engine()
    assert isinstance(engine, Engine)
    try:
        load(engine, write_tiny_gguf(tmp_path, pooling=gguf.PoolingType.LAST), pool_tokens=64)
        with serving(engine) as client:
            one = client.embed("tiny", "hello").embeddings[0]
            several = client.embed("tiny", ["the user", "hello"]).embeddings
            assert list(several[1]) == list(one)
            assert len(client.embed("tiny", "hello", dimensions=8).embeddings[0]) == 8
            assert list(client.embeddings("tiny", "hello").embedding) == list(one)
            long = client.embed("tiny", "a" * 200)
            assert long.prompt_eval_count == 64, "cut off at the window"
            with pytest.raises(ollama.ResponseError, match="200 tokens"):
                client.embed("tiny", "a" * 200, truncate=False)
            with pytest.raises(ollama.ResponseError, match="writes no text"):
                client.chat("tiny", ASK)
    finally:
        engine.shutdown()
