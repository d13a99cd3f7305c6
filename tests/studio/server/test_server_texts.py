"""llama-server's small routes: what the loaded model makes of text, through HTTP; the engine here is a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.fake_engine import FakeEngine
from fakes.http_driver import assert_error, on_a_loop, open_client
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    load(engine, write_tiny_gguf(tmp_path_factory.mktemp("model")))
    yield engine
    engine.shutdown()


def test_tokens_go_and_come_back(engine: Engine) -> None:
    @on_a_loop
    async def there_and_back() -> None:
        async with open_client(engine) as client:
            made = (await client.post("/tokenize", json={"content": "hello w\u00f6rld"})).json()
            back = await client.post("/detokenize", json=made)
        assert back.json() == {"content": "hello w\u00f6rld"}
        assert all(type(token_id) is int for token_id in made["tokens"])

    there_and_back()


def test_pieces_are_text_or_bytes_where_a_character_is_split(engine: Engine) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            body = {"content": "hello \u00f6<|im_end|>", "with_pieces": True}
            tokens = (await client.post("/tokenize", json=body)).json()["tokens"]
        assert [token["piece"] for token in tokens] == ["hello", " ", [0xC3], [0xB6], "<|im_end|>"]

    ask()


def test_text_and_ids_may_be_mixed_and_control_tokens_be_text(engine: Engine) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:

            async def tokens(**body: object) -> list[int]:
                return (await client.post("/tokenize", json=body)).json()["tokens"]

            (end_id,) = await tokens(content="<|im_end|>")
            assert await tokens(content=["hello", end_id]) == [
                *await tokens(content="hello"),
                end_id,
            ]
            assert end_id not in await tokens(content="<|im_end|>", parse_special=False)
            assert await tokens(content=[]) == await tokens(content="") == []

    ask()


def test_a_chat_becomes_its_prompt(engine: Engine) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            body = {"messages": [{"role": "user", "content": "hello"}]}
            answer = await client.post("/apply-template", json=body)
        text = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        assert answer.json() == {"prompt": text}

    ask()


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "content"),
        ("/tokenize", {"content": 5}, "content"),
        ("/tokenize", {"content": ["a", -1]}, "content"),
        ("/tokenize", {"content": ["a", 1 << 30]}, "content"),
        ("/tokenize", {"content": "a", "with_pieces": "yes"}, "with_pieces"),
        ("/detokenize", {"tokens": "1"}, "tokens"),
        ("/detokenize", {"tokens": [1, "a"]}, "tokens"),
        ("/detokenize", {"tokens": [1 << 30]}, "tokens"),
        ("/apply-template", {"messages": []}, "messages"),
    ],
)
def test_what_is_wrong_is_named(
    engine: Engine, path: str, body: dict[str, object], param: str
) -> None:
    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:
            assert_error(await client.post(path, json=body), 400, "invalid_value", param)

    ask()


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/apply-template", "/v1/embeddings"])
@on_a_loop
async def test_head_and_options_are_answered_without_a_body_being_read(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        head = await client.head(path)
        preflight = await client.options(
            path,
            headers={
                "origin": "http://localhost:3000",
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type, authorization",
            },
        )
        plain = await client.options(path)
    assert head.status_code == 405
    assert head.headers["allow"] == "POST"
    assert (plain.status_code, plain.headers["allow"], plain.content) == (204, "POST", b"")
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert "POST" in preflight.headers["access-control-allow-methods"]


def test_a_begun_reply_stands_open_at_the_end_of_the_prompt_and_is_gone_on_with(
    engine: Engine,
) -> None:
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "wor"}]
    short = {"max_tokens": 4, "temperature": 0}

    @on_a_loop
    async def ask() -> None:
        async with open_client(engine) as client:

            async def rendered(**fields: object) -> str:
                body = {"messages": messages, **fields}
                return (await client.post("/apply-template", json=body)).json()["prompt"]

            prompt = await rendered()
            assert prompt.endswith("<|im_start|>assistant\nwor")
            assert prompt == await rendered(
                continue_final_message=True, add_generation_prompt=False
            )
            closed = await rendered(continue_final_message=False)
            assert closed.endswith("wor<|im_end|>\n<|im_start|>assistant\n")
            chat = await client.post("/v1/chat/completions", json={"messages": messages, **short})
            text = await client.post("/completion", json={"prompt": prompt, **short})
            reply = chat.json()["choices"][0]["message"]["content"]
            assert reply == text.json()["content"]

    ask()
