"""llama-server's own completion: its fields, its events, its figures; on a real engine with a tiny model."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pytest

from engine.api import GrammarKind, Infill, Text
from engine.factory import create_engine
from engine.runtime.engine import Engine
from fakes.fake_engine import FakeEngine
from fakes.http_driver import AsgiCall, assert_error, make_app, on_a_loop, open_client
from fakes.parking_rig import load
from fakes.tiny_files import write_tiny_gguf

PATH = "/completion"
PIECE = {"index", "content", "tokens", "stop", "id_slot", "tokens_predicted", "tokens_evaluated"}


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
            answer = await client.post(PATH, json={"temperature": 0, "n_predict": 6, **body})
            assert answer.status_code == 200, answer.text
            answers.append(answer.json())

    run()
    return answers[0]


def events(engine: Engine, body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    found: list[Any] = []

    @on_a_loop
    async def run() -> None:
        body_of_stream = {"temperature": 0, "n_predict": 6, "stream": True, **body}
        call = AsgiCall(make_app(engine), PATH, body_of_stream)
        await call.finished()
        found.extend((call.text, call.chunks))

    run()
    return found[0], found[1]


def test_a_reply_in_one_piece_has_the_fields_of_this_protocol(engine: Engine) -> None:
    reply = ask(engine, {"prompt": "hello you", "return_tokens": True})
    assert reply["stop"] is True
    assert reply["stop_type"] == "limit"
    assert reply["stopping_word"] == ""
    assert reply["model"] == "tiny"
    assert len(reply["tokens"]) == reply["tokens_predicted"] == 6
    assert reply["tokens_cached"] == reply["tokens_evaluated"] + 6
    timings = reply["timings"]
    assert timings["prompt_n"] + timings["cache_n"] == reply["tokens_evaluated"]
    assert timings["predicted_n"] == 6
    assert timings["predicted_per_second"] > 0
    assert ask(engine, {"prompt": "hello you"})["tokens"] == []


def test_a_stream_is_the_same_text_in_events_without_a_trailer(engine: Engine) -> None:
    whole = ask(engine, {"prompt": "hello you", "return_tokens": True})
    text, chunks = events(engine, {"prompt": "hello you"})
    *pieces, last = chunks
    assert "[DONE]" not in text
    assert all(set(piece) == PIECE and piece["stop"] is False for piece in pieces)
    assert "".join(piece["content"] for piece in pieces) == whole["content"]
    assert [i for piece in pieces for i in piece["tokens"]] == whole["tokens"]
    counts = list(accumulate(len(piece["tokens"]) for piece in pieces))
    assert [piece["tokens_predicted"] for piece in pieces] == counts
    assert last["stop"] is True
    same = ("stop_type", "tokens_predicted", "tokens_evaluated", "has_new_line", "truncated")
    assert [last[name] for name in same] == [whole[name] for name in same]


def test_ids_and_mixed_lists_are_one_prompt(engine: Engine) -> None:
    whole = ask(engine, {"prompt": "hello you"})
    hello = whole["tokens_evaluated"]
    ids = ask(engine, {"prompt": [5, 6, 7]})
    assert ids["tokens_evaluated"] == 3
    mixed = ask(engine, {"prompt": ["hello you", 5]})
    assert mixed["tokens_evaluated"] == hello + 1
    assert ask(engine, {"prompt": ["hello you"]})["content"] == whole["content"]


def test_probabilities_are_told_on_request(engine: Engine) -> None:
    reply = ask(engine, {"prompt": "hello", "n_probs": 3})
    told = reply["completion_probabilities"]
    assert len(told) == 6
    assert all(len(one["top_logprobs"]) == 3 for one in told)
    assert all(one["id"] == one["top_logprobs"][0]["id"] for one in told), "greedy"
    _, chunks = events(engine, {"prompt": "hello", "n_probs": 3})
    assert [p for c in chunks for p in c.get("completion_probabilities", ())] == told


def test_a_stop_string_is_named_and_control_tokens_are_meant(engine: Engine) -> None:
    content = ask(engine, {"prompt": "hello", "n_predict": 40})["content"]
    word = next(char for char in content if char != "\ufffd")
    reply = ask(engine, {"prompt": "hello", "n_predict": 40, "stop": [word, ""]})
    assert (reply["stop_type"], reply["stopping_word"]) == ("word", word)
    assert reply["content"] == content.split(word)[0]
    assert ask(engine, {"prompt": "<|im_end|>", "n_predict": 0})["tokens_evaluated"] == 1


def test_the_end_repeats_the_prompt_and_the_settings(engine: Engine) -> None:
    body = {"prompt": "hello you", "top_k": -1, "repeat_penalty": 1.5, "seed": 7, "stop": ["\x01"]}
    whole, (_, chunks) = ask(engine, body), events(engine, body)
    told = whole["generation_settings"]
    assert whole["prompt"] == chunks[-1]["prompt"] == "hello you"
    names = ("temperature", "n_predict", "top_k", "repeat_penalty", "seed", "stop", "stream")
    assert [told[name] for name in names] == [0, 6, 0, 1.5, 7, ["\x01"], False]
    assert {**chunks[-1]["generation_settings"], "stream": False} == told
    ids = ask(engine, {"prompt": [5, 6, 7], "return_tokens": True})
    assert ids["prompt"]
    assert isinstance(ids["generation_settings"]["seed"], int)


def test_only_the_fields_asked_for_are_told(engine: Engine) -> None:
    fields = ["content", "generation_settings/n_predict", "timings/no", "nothing"]
    whole = ask(engine, {"prompt": "hello"})
    assert ask(engine, {"prompt": "hello", "response_fields": fields}) == {
        "content": whole["content"],
        "n_predict": 6,
    }


@on_a_loop
async def test_fields_reach_the_engine_as_they_are_meant() -> None:
    fake = FakeEngine()
    body = {
        "prompt": "a",
        "seed": -1,
        "n_predict": -1,
        "repeat_penalty": 1.2,
        "repeat_last_n": 32,
        "logit_bias": [[5, 1.5], [6, False]],
        "grammar": "root ::= 'x'",
        "cache_prompt": True,
        "id_slot": 0,
        "top_k": -1,
        "mirostat": 0,
    }
    async with open_client(fake) as client:
        assert (await client.post(PATH, json=body)).status_code == 200
    (request,) = fake.requests.values()
    assert request.prompt == Text(text="a", reads_control=True)
    assert request.sampling.seed is None
    assert request.max_tokens is None
    assert request.sampling.top_k == 0
    assert request.sampling.repetition_penalty == 1.2
    assert request.sampling.penalty_last_n == 32
    assert request.sampling.logit_bias == ((5, 1.5), (6, -100.0))
    assert request.grammar is not None
    assert request.grammar.kind is GrammarKind.GBNF


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": "a", "n_predict": -3}, "n_predict"),
        ({"prompt": "a", "n_probs": 21}, "n_probs"),
        ({"prompt": "a", "logit_bias": [["hello", 1]]}, "logit_bias"),
        ({"prompt": "a", "logit_bias": [[1, True]]}, "logit_bias"),
        ({"prompt": "a", "mirostat": 2}, "mirostat"),
        ({"prompt": "a", "n_cmpl": 2}, "n_cmpl"),
        ({"prompt": "a", "n": 2}, "n"),
        ({"prompt": "a", "samplers": ["top_k"]}, "samplers"),
        ({"prompt": "a", "timings_per_token": True}, "timings_per_token"),
        ({"prompt": "a", "xtc_probability": 0.5}, "xtc_probability"),
        ({"prompt": "a", "grammar": "root ::= 'x'", "json_schema": {"type": "object"}}, "grammar"),
        ({"prompt": "a", "image_data": [{}]}, "image_data"),
    ],
)
@on_a_loop
async def test_what_is_wrong_is_named(body: dict[str, Any], param: str) -> None:
    fake = FakeEngine()
    async with open_client(fake) as client:
        assert_error(await client.post(PATH, json=body), 400, "invalid_value", param)
    assert not fake.requests


@on_a_loop
async def test_a_gap_is_asked_for_with_what_other_files_say() -> None:
    fake = FakeEngine()
    body = {
        "input_prefix": "def f(",
        "prompt": "x, ",
        "input_suffix": "return x",
        "input_extra": [{"filename": "a.py", "text": "y = 1"}],
    }
    async with open_client(fake) as client:
        assert (await client.post("/infill", json=body)).status_code == 200
    (request,) = fake.requests.values()
    context = "# a.py\ny = 1\n\n"
    assert request.prompt == Infill(before="def f(x, ", after="return x", context=context)
