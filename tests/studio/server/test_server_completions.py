"""Text completions: the prompt echoed, with its log probabilities; the best of several; a gap filled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.api import FinishReason, Infill, Request, TokenDelta, TokenLogprob
from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.fake_engine import FakeEngine
from fakes.http_driver import TEXT, AsgiCall, assert_error, make_app, on_a_loop, open_client
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    load(engine, write_tiny_gguf(tmp_path_factory.mktemp("model")), pool_tokens=1024)
    yield engine
    engine.shutdown()


def ask(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []

    @on_a_loop
    async def run() -> None:
        async with open_client(engine) as client:
            answer = await client.post(TEXT, json={"temperature": 0, **body})
            assert answer.status_code == 200, answer.text
            answers.append(answer.json())

    run()
    return answers[0]


def chunks(engine: Engine, body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    @on_a_loop
    async def run() -> None:
        call = AsgiCall(make_app(engine), TEXT, {"temperature": 0, "stream": True, **body})
        await call.finished()
        assert call.status == 200, call.text
        found.extend(call.chunks)

    run()
    return found


@pytest.mark.parametrize("prompt", ["", None, [[]]])
def test_an_empty_prompt_begins_a_text(engine: Engine, prompt: object) -> None:
    answer = ask(engine, {"prompt": prompt, "max_tokens": 4, "ignore_eos": True, "echo": True})
    assert answer["usage"]["completion_tokens"] == 4
    assert answer["usage"]["prompt_tokens"] == 1
    assert answer["choices"][0]["finish_reason"] == "length"


def test_as_many_replies_are_written_as_clients_of_openai_may_ask_for(engine: Engine) -> None:
    answer = ask(engine, {"prompt": "hello you", "n": 128, "max_tokens": 2, "temperature": 1})
    assert [choice["index"] for choice in answer["choices"]] == list(range(128))
    assert answer["usage"]["completion_tokens"] <= 256


def test_the_prompt_is_echoed_before_the_reply(engine: Engine) -> None:
    plain = ask(engine, {"prompt": "hello you", "max_tokens": 4})["choices"][0]
    echoed = ask(engine, {"prompt": "hello you", "max_tokens": 4, "echo": True})["choices"][0]
    assert echoed["text"] == "hello you" + plain["text"]
    streamed = chunks(engine, {"prompt": "hello you", "max_tokens": 4, "echo": True})
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == echoed["text"]


def test_token_ids_are_echoed_as_text_and_each_prompt_before_its_own_choices(
    engine: Engine,
) -> None:
    body = {"prompt": ["hello", "you"], "n": 2, "max_tokens": 0, "echo": True}
    texts = [choice["text"] for choice in ask(engine, body)["choices"]]
    assert texts == ["hello", "hello", "you", "you"]
    (choice,) = ask(engine, {"prompt": [40, 41], "max_tokens": 0, "echo": True})["choices"]
    assert len(choice["text"]) == 2


def test_the_prompts_own_log_probabilities_are_told_token_by_token(engine: Engine) -> None:
    whole = "hello you is the user"
    body = {"prompt": whole, "max_tokens": 0, "echo": True, "logprobs": 2}
    scored = ask(engine, body)["choices"][0]
    assert (scored["text"], scored["finish_reason"]) == (whole, "length")
    told = scored["logprobs"]
    assert told["token_logprobs"][0] is None
    assert told["top_logprobs"][0] is None
    assert all(value < 0 for value in told["token_logprobs"][1:])
    assert all(1 <= len(top) <= 2 for top in told["top_logprobs"][1:])
    assert len({len(column) for column in told.values()}) == 1
    assert "".join(told["tokens"]) == whole
    assert told["text_offset"][:2] == [0, len(told["tokens"][0])]


def test_a_stream_tells_the_prompt_with_its_log_probabilities_first(engine: Engine) -> None:
    body = {"prompt": "hello you", "max_tokens": 3, "echo": True, "logprobs": 0}
    whole = ask(engine, body)["choices"][0]
    streamed = [chunk["choices"][0] for chunk in chunks(engine, body)]
    assert streamed[0]["text"].startswith("hello you")
    assert streamed[0]["logprobs"]["token_logprobs"][0] is None
    for column in ("tokens", "token_logprobs", "text_offset"):
        joined = [x for each in streamed if each["logprobs"] for x in each["logprobs"][column]]
        assert joined == whole["logprobs"][column]
    assert "".join(each["text"] for each in streamed) == whole["text"]


class Rated(FakeEngine):
    """Every choice is one token, whose log probability falls and rises again."""

    RATES = (-3.0, -1.0, -2.0, -0.5)

    def submit(self, request: Request) -> None:
        super().submit(request)
        number = len(self.requests) - 1
        rate = self.RATES[number % len(self.RATES)]
        self.start(request.request_id)
        self.alive[request.request_id] = 1
        token = TokenLogprob(token_id=1, text="x", token_bytes=b"x", logprob=rate)
        self.emit(
            TokenDelta(
                request_id=request.request_id,
                text=f"choice {number}",
                token_ids=(1,),
                logprobs=() if request.sampling.logprobs is None else (token,),
            )
        )
        self.finish(request.request_id, FinishReason.LENGTH)


@on_a_loop
async def test_of_several_the_likeliest_are_told_the_best_first() -> None:
    engine = Rated(auto=False)
    async with open_client(engine) as client:
        body = {"prompt": ["a", "b"], "n": 2, "best_of": 4, "echo": True}
        answer = (await client.post(TEXT, json=body)).json()
    assert [(choice["index"], choice["text"]) for choice in answer["choices"]] == [
        (0, "achoice 3"),
        (1, "achoice 1"),
        (2, "bchoice 7"),
        (3, "bchoice 5"),
    ]
    assert all(choice["logprobs"] is None for choice in answer["choices"])
    assert answer["usage"]["completion_tokens"] == 8, "all that were tried were paid for"
    assert answer["usage"]["prompt_tokens"] == 10


@on_a_loop
async def test_a_suffix_makes_a_gap_and_stop_tokens_reach_the_engine() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        body = {"prompt": "def f(", "suffix": "return x", "stop_token_ids": [7, 9]}
        assert (await client.post(TEXT, json=body)).status_code == 200
    (request,) = engine.requests.values()
    assert request.prompt == Infill(before="def f(", after="return x")
    assert request.stop_ids == (7, 9)


def test_a_suffix_is_refused_by_name_where_the_model_fills_no_gaps(engine: Engine) -> None:
    @on_a_loop
    async def run() -> None:
        async with open_client(engine) as client:
            answer = await client.post(TEXT, json={"prompt": "a", "suffix": "b"})
        assert "fill-in-the-middle" in assert_error(answer, 400, "invalid_value", "suffix")

    run()
