"""langchain-openai against the server: `… ADDRESS chat|tools|structured`; prints JSON."""

from __future__ import annotations

import json
import sys

from langchain_openai import ChatOpenAI

from fakes.client_jobs import (
    MAX_TOKENS,
    MODEL,
    PROMPT,
    TOOL,
    TOOL_PROMPT,
    TOWN_PROMPT,
    Town,
    side_by_side,
)


def chat_at(address: str) -> ChatOpenAI:
    return ChatOpenAI(
        base_url=f"{address}/v1",
        api_key="none",
        model=MODEL,
        temperature=0,
        max_tokens=MAX_TOKENS,
    )


def whole(address: str) -> str:
    return str(chat_at(address).invoke(PROMPT).content)


def streamed(address: str) -> str:
    return "".join(str(chunk.content) for chunk in chat_at(address).stream(PROMPT))


def answer(address: str, what: str) -> object:
    match what:
        case "chat":
            return side_by_side(address, (whole, streamed))
        case "tools":
            reply = (
                chat_at(address)
                .bind_tools([TOOL], tool_choice="required", parallel_tool_calls=False)
                .invoke(TOOL_PROMPT)
            )
            (call,) = reply.tool_calls
            return {"name": call["name"], "arguments": call["args"]}
    assert what == "structured"
    town = chat_at(address).with_structured_output(Town).invoke(TOWN_PROMPT)
    assert isinstance(town, Town)
    return town.model_dump()


json.dump(answer(*sys.argv[1:]), sys.stdout)
