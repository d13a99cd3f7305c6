"""The clients that a test can call in its own process: each way to ask for the same reply, and its text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anthropic
import ollama
import openai

from fakes.client_jobs import MAX_TOKENS, MESSAGES, MODEL, PROMPT

OLLAMA_OPTIONS = {"temperature": 0, "num_predict": MAX_TOKENS}


def whole(address: str) -> str:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
        reply = client.chat.completions.create(
            model=MODEL, messages=MESSAGES, temperature=0, max_tokens=MAX_TOKENS
        )
    return reply.choices[0].message.content or ""


def streamed(address: str) -> str:
    """By the package's own helper, which puts the chunks together and is strict about them."""
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client,
        client.chat.completions.stream(
            model=MODEL, messages=MESSAGES, temperature=0, max_tokens=MAX_TOKENS
        ) as stream,
    ):
        return stream.get_final_completion().choices[0].message.content or ""


def streamed_async(address: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client:
            chunks = await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, temperature=0, max_tokens=MAX_TOKENS, stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])

    return asyncio.run(ask())


def responded(address: str) -> str:
    """By /v1/responses and the package's helper for its events."""
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client,
        client.responses.stream(
            model=MODEL, input=MESSAGES, temperature=0, max_output_tokens=MAX_TOKENS
        ) as stream,
    ):
        return stream.get_final_response().output_text


def message_whole(address: str) -> str:
    with anthropic.Anthropic(base_url=address, api_key="none") as client:
        reply = client.messages.create(
            model=MODEL, messages=MESSAGES, max_tokens=MAX_TOKENS, extra_body={"temperature": 0}
        )
    return "".join(block.text for block in reply.content if block.type == "text")


def message_streamed(address: str) -> str:
    with (
        anthropic.Anthropic(base_url=address, api_key="none") as client,
        client.messages.stream(
            model=MODEL, messages=MESSAGES, max_tokens=MAX_TOKENS, extra_body={"temperature": 0}
        ) as stream,
    ):
        return "".join(stream.text_stream)


def ollama_whole(address: str) -> str:
    with ollama.Client(address) as client:
        reply = client.chat(MODEL, MESSAGES, options=OLLAMA_OPTIONS)
    return reply.message.content or ""


def ollama_streamed(address: str) -> str:
    with ollama.Client(address) as client:
        chunks = client.chat(MODEL, MESSAGES, stream=True, options=OLLAMA_OPTIONS)
        return "".join(chunk.message.content or "" for chunk in chunks)


def ollama_generated(address: str) -> str:
    with ollama.Client(address) as client:
        chunks = client.generate(MODEL, PROMPT, stream=True, options=OLLAMA_OPTIONS)
        return "".join(chunk.response for chunk in chunks)


CALLS: dict[str, tuple[Callable[[str], str], ...]] = {
    "openai": (whole, streamed, streamed_async, responded),
    "anthropic": (message_whole, message_streamed),
    "ollama": (ollama_whole, ollama_streamed, ollama_generated),
}
"""By package; all of them ask what `whole` asks."""
