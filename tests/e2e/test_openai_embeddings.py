"""The openai package's embeddings and text completions against the real server, with a scripted engine behind it."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from fakes.http_driver import WatchedEngine
from studio.models.server_settings import ServerSettings
from studio.server.thread import ServerThread

VECTOR = [0.5, -0.5, 0.70703125]


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    server = ServerThread(WatchedEngine(), ServerSettings(port=0))
    server.start()
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client
    server.stop()


def test_embeddings_come_as_numbers_whichever_way_they_travel(client: openai.OpenAI) -> None:
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(model="tiny", input=["a", "b"], **options)
        assert [entry.index for entry in answer.data] == [0, 1]
        if options.get("encoding_format") != "base64":
            assert [entry.embedding for entry in answer.data] == [VECTOR, VECTOR]
    assert answer.usage.total_tokens == 10


def test_fewer_dimensions(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model="tiny", input="a", dimensions=2)
    assert answer.data[0].embedding == pytest.approx([0.5**0.5, -(0.5**0.5)])


def test_echo_best_of_and_suffix(client: openai.OpenAI) -> None:
    echoed = client.completions.create(model="tiny", prompt="Well. ", echo=True)
    assert echoed.choices[0].text == "Well. Hello there, friend."
    best = client.completions.create(model="tiny", prompt="a", n=2, best_of=4)
    assert len(best.choices) == 2
    filled = client.completions.create(model="tiny", prompt="a", suffix="b")
    assert filled.choices[0].text == "Hello there, friend."
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="tiny", prompt="a", n=3, best_of=2)
    assert refused.value.param == "best_of"
