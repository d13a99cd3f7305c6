"""The openai package on the starter model: schemas that bind, tools, responses, and many calls at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import openai
import pytest

from fakes.client_calls import whole
from fakes.client_jobs import MAX_TOKENS, MESSAGES, MODEL, TOOL, TOOL_PROMPT, TOWN_PROMPT, Town
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

ASK_TOWN = [{"role": "user", "content": TOWN_PROMPT}]
ASK_TOOL = [{"role": "user", "content": TOOL_PROMPT}]
FLAT_TOOL = {"type": "function", **TOOL["function"]}
"""As /v1/responses has it."""


@pytest.fixture
def client(rig: Rig) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{rig.address}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_pydantic_schema_is_kept_to(client: openai.OpenAI) -> None:
    reply = client.chat.completions.parse(
        model=MODEL, messages=ASK_TOWN, response_format=Town, temperature=1, max_tokens=MAX_TOKENS
    )
    assert isinstance(reply.choices[0].message.parsed, Town)


def test_a_schema_is_kept_to_in_a_stream(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=ASK_TOWN, response_format=Town, temperature=1, max_tokens=MAX_TOKENS
    ) as stream:
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Town)


def test_a_tool_is_called_and_its_result_answered(client: openai.OpenAI) -> None:
    asked = client.chat.completions.create(
        model=MODEL,
        messages=ASK_TOOL,
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
        max_tokens=MAX_TOKENS,
    ).choices[0]
    assert asked.finish_reason == "tool_calls"
    (call,) = asked.message.tool_calls or ()
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"town"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "It is sunny."}
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[*ASK_TOOL, asked.message, result],
        temperature=0,
        max_tokens=MAX_TOKENS,
    ).choices[0]
    assert answer.message.content


def test_a_tool_call_comes_in_deltas(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL,
        messages=ASK_TOOL,
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
        max_tokens=MAX_TOKENS,
    ) as stream:
        kinds = {event.type for event in stream}
        choice = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or ()
    assert set(json.loads(call.function.arguments)) == {"town"}


def test_a_response_keeps_to_a_schema_and_calls_tools(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(
        model=MODEL, input=TOWN_PROMPT, text_format=Town, max_output_tokens=MAX_TOKENS
    )
    assert isinstance(parsed.output_parsed, Town)
    called = client.responses.create(
        model=MODEL,
        input=TOOL_PROMPT,
        tools=[FLAT_TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=MAX_TOKENS,
    )
    (call,) = (item for item in called.output if item.type == "function_call")
    assert set(json.loads(call.arguments)) == {"town"}


def test_a_response_goes_on_from_the_one_before(client: openai.OpenAI) -> None:
    first = client.responses.create(
        model=MODEL, input="My name is Ada.", temperature=0, max_output_tokens=20
    )
    second = client.responses.create(
        model=MODEL,
        input="What is my name?",
        previous_response_id=first.id,
        temperature=0,
        max_output_tokens=20,
    )
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens + first.usage.output_tokens
    assert second.output_text


def test_many_async_calls_at_once_say_what_one_says(rig: Rig) -> None:
    async def ask_all() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=f"{rig.address}/v1", api_key="none") as client:
            asks = [
                client.chat.completions.create(
                    model=MODEL, messages=MESSAGES, temperature=0, max_tokens=MAX_TOKENS
                )
                for _ in range(16)
            ]
            return [reply.choices[0].message.content for reply in await asyncio.gather(*asks)]

    assert asyncio.run(ask_all()) == [whole(rig.address)] * 16
