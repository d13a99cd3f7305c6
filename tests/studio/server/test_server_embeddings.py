"""POST /v1/embeddings: each text's vector is the same alone and among others, whatever form it comes in."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import gguf
import pytest

from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.http_driver import EMBED, LLAMA_EMBED, TEXT, assert_error, on_a_loop, open_client
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf
from studio.server.embeddings import encoded

TEXTS = ["hello world", "the user is the system", "hello " * 40, "a"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    path = write_tiny_gguf(tmp_path_factory.mktemp("model"), pooling=gguf.PoolingType.MEAN)
    load(engine, path, pool_tokens=512)
    yield engine
    engine.shutdown()


def answers(engine: Engine, *bodies: dict[str, Any]) -> list[dict[str, Any]]:
    """What each is answered, one after another."""
    found: list[dict[str, Any]] = []

    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            for body in bodies:
                answer = await client.post(EMBED, json=body)
                assert answer.status_code == 200, answer.text
                found.append(answer.json())

    ask()
    return found


def vector_of(reply: dict[str, Any], index: int = 0) -> list[float]:
    return reply["data"][index]["embedding"]


def test_alone_and_in_a_batch_in_any_order_the_numbers_are_the_same(engine: Engine) -> None:
    alone = answers(engine, *({"input": text} for text in TEXTS))
    batch, turned = answers(engine, {"input": TEXTS}, {"input": TEXTS[::-1]})
    for index, one in enumerate(alone):
        assert vector_of(one) == vector_of(batch, index) == vector_of(turned, -1 - index)
    assert [entry["index"] for entry in batch["data"]] == [0, 1, 2, 3]
    assert batch["object"] == "list"
    assert batch["model"] == "tiny"
    tokens = sum(one["usage"]["prompt_tokens"] for one in alone)
    assert batch["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_token_ids_are_taken_as_they_are(engine: Engine) -> None:
    one, same, several = answers(
        engine, {"input": [5, 6, 7]}, {"input": [[5, 6, 7]]}, {"input": [[9], [5, 6, 7]]}
    )
    assert vector_of(one) == vector_of(same) == vector_of(several, 1)
    assert one["usage"]["prompt_tokens"] == 3


def test_base64_is_the_same_numbers(engine: Engine) -> None:
    floats, coded = answers(
        engine, {"input": "hello"}, {"input": "hello", "encoding_format": "base64"}
    )
    raw = base64.b64decode(vector_of(coded))  # type: ignore[arg-type]
    assert list(struct.unpack("<64f", raw)) == vector_of(floats)


def test_fewer_dimensions_are_the_first_scaled_to_length_one_again(engine: Engine) -> None:
    whole, few = answers(engine, {"input": "hello"}, {"input": "hello", "dimensions": 8})
    kept = vector_of(whole)[:8]
    length = math.sqrt(math.fsum(value * value for value in kept))
    assert vector_of(few) == pytest.approx([value / length for value in kept], rel=1e-6)
    assert math.fsum(value * value for value in vector_of(few)) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": [[1], []]}, "input"),
        ({"input": [-1]}, "input"),
        ({"input": [1 << 30]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a", "dimensions": -4}, "dimensions"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": 65}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "max_wait": -1}, "max_wait"),
    ],
)
def test_what_is_wrong_is_named(engine: Engine, body: dict[str, Any], param: str) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            assert_error(await client.post(EMBED, json=body), 400, "invalid_value", param)

    ask()


def test_one_text_that_is_too_long_keeps_all_from_being_begun(engine: Engine) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            answer = await client.post(EMBED, json={"input": ["hello", "a" * 4000]})
        assert_error(answer, 400, "context_length_exceeded")
        error = answer.json()["error"]
        assert (error["n_prompt_tokens"], error["n_ctx"]) == (4000, 512)

    ask()


def test_a_model_for_embeddings_writes_no_text(engine: Engine) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            answer = await client.post(TEXT, json={"prompt": "hello"})
        assert "writes no text" in assert_error(answer, 400, "invalid_value", "model")

    ask()


@on_a_loop
async def test_a_model_that_writes_gives_none_and_the_remedy_is_named() -> None:
    engine = FakeEngine()
    engine._snapshot = FakeEngine.ready_snapshot(replace(TINY_MODEL, embedding_size=0))
    async with open_client(engine) as client:
        answer = await client.post(EMBED, json={"input": "hello"})
    assert "Qwen3-Embedding" in assert_error(answer, 400, "invalid_value", "model")
    assert not engine.requests


@on_a_loop
async def test_a_large_batch_is_encoded_in_turns_with_others() -> None:
    vectors = [(0.1,) * 64] * 100
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    coded = await encoded(vectors, None)
    counting.cancel()
    assert turns >= 10
    assert [tuple(json.loads(each)) for each in coded] == vectors


def llama_answer(engine: Engine, body: dict[str, Any], path: str = LLAMA_EMBED) -> Any:
    """What llama-server's clients are answered."""
    found: list[Any] = []

    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            found.append(answer.json())

    ask()
    return found[0]


@pytest.mark.parametrize("path", ["/embedding", "/embeddings"])
@pytest.mark.parametrize("field", ["content", "input"])
def test_llama_servers_form_has_the_same_vectors(engine: Engine, path: str, field: str) -> None:
    (ours,) = answers(engine, {"input": TEXTS})
    entries = llama_answer(engine, {field: TEXTS}, path)
    assert [entry["index"] for entry in entries] == [0, 1, 2, 3]
    assert [entry["embedding"] for entry in entries] == [[vector_of(ours, i)] for i in range(4)]
    assert llama_answer(engine, {field: TEXTS[0]}, path)[0] == entries[0]


@pytest.mark.parametrize(
    ("norm", "size"),
    [
        (0, lambda vector: max(map(abs, vector)) / 32760),
        (1, lambda vector: math.fsum(map(abs, vector))),
        (2, lambda vector: math.hypot(*vector)),
        (3, lambda vector: math.fsum(abs(value) ** 3 for value in vector) ** (1 / 3)),
        (100, lambda vector: max(map(abs, vector))),
    ],
)
def test_llama_servers_norms(
    engine: Engine, norm: int, size: Callable[[list[float]], float]
) -> None:
    (entry,) = llama_answer(engine, {"content": "hello world", "embd_normalize": norm})
    (vector,) = entry["embedding"]
    assert size(vector) == pytest.approx(1, rel=0.02 if norm == 100 else 1e-6)


@pytest.mark.parametrize(
    ("body", "param"),
    [({}, "content"), ({"content": ""}, "input"), ({"content": "a", "embd_normalize": -1}, "embd_normalize"),
     ({"content": "a", "embd_normalize": 101}, "embd_normalize"), ({"content": [1.5]}, "content")],
)  # fmt: skip
@on_a_loop
async def test_llama_servers_form_is_refused_by_name(body: dict[str, Any], param: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(LLAMA_EMBED, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
