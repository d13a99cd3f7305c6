"""The anthropic package on the starter model: streams, tools, counting, errors of its own classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from fakes.client_jobs import MAX_TOKENS, MESSAGES, MODEL, TOOL, TOOL_PROMPT
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

TOOLS: list[Any] = [
    {
        "name": TOOL["function"]["name"],
        "description": TOOL["function"]["description"],
        "input_schema": TOOL["function"]["parameters"],
    }
]
ASK_TOOL: list[Any] = [{"role": "user", "content": TOOL_PROMPT}]
GREEDY = {"temperature": 0}


@pytest.fixture
def client(rig: Rig) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=rig.address, api_key="none", max_retries=0) as client:
        yield client


def test_tokens_are_counted_as_they_are_used(client: anthropic.Anthropic) -> None:
    count = client.messages.count_tokens(model=MODEL, messages=MESSAGES, system="Be brief.")
    reply = client.messages.create(
        model=MODEL, messages=MESSAGES, system="Be brief.", max_tokens=8, extra_body=GREEDY
    )
    read = reply.usage.input_tokens + (reply.usage.cache_read_input_tokens or 0)
    assert read == count.input_tokens > 5


def test_a_cut_reply_says_so(client: anthropic.Anthropic) -> None:
    reply = client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=2, extra_body=GREEDY)
    assert (reply.stop_reason, reply.usage.output_tokens) == ("max_tokens", 2)


def test_a_stream_is_put_together_to_the_whole(client: anthropic.Anthropic) -> None:
    whole = client.messages.create(
        model=MODEL, messages=MESSAGES, max_tokens=MAX_TOKENS, extra_body=GREEDY
    )
    with client.messages.stream(
        model=MODEL, messages=MESSAGES, max_tokens=MAX_TOKENS, extra_body=GREEDY
    ) as stream:
        streamed = stream.get_final_message()
    assert [block.to_dict() for block in streamed.content] == [
        block.to_dict() for block in whole.content
    ]
    assert streamed.stop_reason == whole.stop_reason == "end_turn"
    assert streamed.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_and_its_result_answered(
    client: anthropic.Anthropic, *, streams: bool
) -> None:
    asked: dict[str, Any] = {
        "model": MODEL,
        "messages": ASK_TOOL,
        "tools": TOOLS,
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "max_tokens": MAX_TOKENS,
        "extra_body": GREEDY,
    }
    if streams:
        with client.messages.stream(**asked) as stream:
            reply = stream.get_final_message()
    else:
        reply = client.messages.create(**asked)
    assert reply.stop_reason == "tool_use"
    (call,) = (block for block in reply.content if block.type == "tool_use")
    assert call.name == "get_weather"
    assert isinstance(call.input, dict)
    assert set(call.input) == {"town"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "It is sunny."}
    answer = client.messages.create(
        model=MODEL,
        messages=[
            *ASK_TOOL,
            {"role": "assistant", "content": reply.content},
            {"role": "user", "content": [result]},
        ],
        tools=TOOLS,
        max_tokens=MAX_TOKENS,
        extra_body=GREEDY,
    )
    assert answer.content


def test_errors_are_the_clients_own_classes(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="gpt-99"):
        client.messages.create(model="gpt-99", messages=MESSAGES, max_tokens=8)
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        client.messages.create(model=MODEL, messages=MESSAGES, max_tokens=-8)
