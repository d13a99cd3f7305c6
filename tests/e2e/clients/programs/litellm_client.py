"""litellm against the server: `litellm_client.py ADDRESS chat|tools`; prints JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import litellm

from fakes.client_jobs import MAX_TOKENS, MODEL, PROMPT, TOOL, TOOL_PROMPT, side_by_side


def ask(address: str, **fields: Any) -> Any:
    return litellm.completion(
        model=f"openai/{MODEL}",
        api_base=f"{address}/v1",
        api_key="none",
        temperature=0,
        max_tokens=MAX_TOKENS,
        **{"messages": [{"role": "user", "content": PROMPT}], **fields},
    )


def whole(address: str) -> str:
    return str(ask(address).choices[0].message.content)


def streamed(address: str) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in ask(address, stream=True))


def answer(address: str, what: str) -> object:
    if what == "chat":
        return side_by_side(address, (whole, streamed))
    assert what == "tools"
    reply = ask(
        address,
        messages=[{"role": "user", "content": TOOL_PROMPT}],
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    call = reply.choices[0].message.tool_calls[0].function
    return {"name": call.name, "arguments": json.loads(call.arguments)}


json.dump(answer(*sys.argv[1:]), sys.stdout)
