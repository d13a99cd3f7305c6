"""What the engine is asked, for what clients send."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.api import (
    Chat,
    ChatMessage,
    Origin,
    Request,
    RequestGroup,
    SamplingParams,
    Text,
    TokenIds,
)
from studio.server.completion_requests import CompletionRequest, completion_requests
from studio.server.protocol import ChatCompletionRequest, SamplingFields
from studio.server.translate import chat_requests

HELLO = [{"role": "user", "content": "hi"}]


def chat(**fields: Any) -> tuple[Request, ...]:
    wire = ChatCompletionRequest.model_validate({"messages": HELLO, **fields})
    return chat_requests(wire, "chatcmpl-x")


def completion(**fields: Any) -> tuple[Request, ...]:
    return completion_requests(CompletionRequest.model_validate(fields), "cmpl-x")


def test_a_bare_request_has_the_engines_defaults() -> None:
    (request,) = chat()
    assert request == Request(
        request_id="chatcmpl-x-0",
        origin=Origin.API,
        prompt=Chat(messages=(ChatMessage(role="user", content="hi"),)),
        tells_parts=True,
    )


def test_every_sampling_field_reaches_the_engine_under_its_name() -> None:
    other_names = {"repeat_penalty", "repeat_last_n"}
    assert set(SamplingFields.model_fields) - other_names == {
        f.name for f in fields(SamplingParams)
    } - {"logprobs"}
    given: dict[str, Any] = {
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 0.9,
        "min_p": 0.1,
        "typical_p": 0.8,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "penalty_last_n": 7,
        "dry_multiplier": 0.8,
        "dry_base": 2.0,
        "dry_allowed_length": 4,
        "dry_penalty_last_n": 100,
        "dry_sequence_breakers": ["\n", "."],
        "logit_bias": {"7": -100, "9": 1.5},
        "seed": 42,
    }
    expected = {
        **given,
        "dry_sequence_breakers": ("\n", "."),
        "logit_bias": ((7, -100.0), (9, 1.5)),
    }
    (request,) = completion(prompt="a", **given)
    assert request.sampling == SamplingParams(**expected)


def test_other_servers_names_for_penalties_are_understood() -> None:
    (request,) = chat(repeat_penalty=1.2, repeat_last_n=8)
    assert request.sampling == SamplingParams(repetition_penalty=1.2, penalty_last_n=8)


def test_limits_stops_and_eos_reach_the_engine() -> None:
    (request,) = chat(max_tokens=9, stop="END", ignore_eos=True)
    assert (request.max_tokens, request.stop, request.ignore_eos) == (9, ("END",), True)
    assert chat(max_tokens=9, max_completion_tokens=4)[0].max_tokens == 4
    assert chat(stop=["a", "b"])[0].stop == ("a", "b")
    assert chat(stop="")[0].stop == chat(stop=[""])[0].stop == ()
    assert chat(stop=["", "a"])[0].stop == ("a",)
    assert chat(max_tokens=-1)[0].max_tokens is None


def test_text_parts_are_one_text_and_developer_is_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (request,) = chat(messages=[{"role": "developer", "content": parts}, *HELLO])
    assert isinstance(request.prompt, Chat)
    assert request.prompt.messages[0] == ChatMessage(role="system", content="a\nb")


def test_logprobs_of_chat_and_completion() -> None:
    assert chat()[0].sampling.logprobs is None
    assert chat(logprobs=False)[0].sampling.logprobs is None
    assert chat(logprobs=True)[0].sampling.logprobs == 0
    assert chat(logprobs=True, top_logprobs=5)[0].sampling.logprobs == 5
    assert completion(prompt="a", logprobs=0)[0].sampling.logprobs == 0


def test_choices_have_ids_and_seeds_of_their_own() -> None:
    requests = chat(n=3, seed=10)
    assert [r.request_id for r in requests] == [f"chatcmpl-x-{i}" for i in range(3)]
    assert [r.sampling.seed for r in requests] == [10, 11, 12]
    assert [r.sampling.seed for r in chat(n=2)] == [None, None]
    largest = (1 << 64) - 1
    assert [r.sampling.seed for r in chat(n=2, seed=largest)] == [largest, 0]


def test_prompts_stay_in_order_with_their_choices_side_by_side() -> None:
    requests = completion(prompt=["a", [1, 2]], n=2, seed=1)
    assert [r.prompt for r in requests] == [
        Text(text="a"),
        Text(text="a"),
        TokenIds(ids=(1, 2)),
        TokenIds(ids=(1, 2)),
    ]
    assert [r.sampling.seed for r in requests] == [1, 2, 1, 2]


def test_every_form_of_prompt_is_understood() -> None:
    assert [r.prompt for r in completion(prompt="a")] == [Text(text="a")]
    for nothing in ("", None, [[]]):
        (begun,) = completion(prompt=nothing)
        assert begun.prompt == Text(text="", begins_anew=True)
    assert [r.prompt for r in completion(prompt=["a", "b"])] == [Text(text="a"), Text(text="b")]
    assert [r.prompt for r in completion(prompt=[3, 4])] == [TokenIds(ids=(3, 4))]
    assert [r.prompt for r in completion(prompt=[[3], []])] == [
        TokenIds(ids=(3,)),
        Text(text="", begins_anew=True),
    ]


def test_what_is_asked_together_is_a_group_and_one_alone_is_none() -> None:
    assert chat()[0].group is None
    assert {r.group for r in chat(n=3)} == {RequestGroup(group_id="chatcmpl-x", size=3)}
    assert {r.group.size for r in completion(prompt=["a", "b"], n=2)} == {4}
