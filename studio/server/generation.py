"""One wire request under way: its engine requests and their events, merged. Server thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from engine.api import Failed, Finished, Request, RequestEvent, TokenDelta
from engine.client import EngineClient, RequestStream
from studio.server.replies import ChoiceText, Json, ReplyShape, park_record, total_usage

ChoiceEvents = asyncio.Queue[tuple[int, RequestEvent]]
"""Events with the index of their choice; those of one choice are in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What to generate and how to tell it."""

    requests: tuple[Request, ...]
    """One per choice, in order of index."""
    choices_per_prompt: int
    shape: ReplyShape
    include_usage: bool = False
    tells_parks: bool = False
    """Whether the end of the reply has a record of its parks: only where the server can park."""


@asynccontextmanager
async def open_choices(
    client: EngineClient, requests: tuple[Request, ...]
) -> AsyncIterator[ChoiceEvents]:
    """Submit all requests; leaving the block aborts those that have not ended."""
    events: ChoiceEvents = asyncio.Queue()
    async with AsyncExitStack() as stack:
        for index, request in enumerate(requests):
            stream = await stack.enter_async_context(client.stream(request))
            pump = asyncio.create_task(_pump(index, stream, events))
            stack.callback(pump.cancel)
        yield events


async def _pump(index: int, stream: RequestStream, events: ChoiceEvents) -> None:
    async for event in stream:
        events.put_nowait((index, event))


async def whole_reply(client: EngineClient, generation: Generation) -> Json:
    """The reply in one piece. Raises the EngineError of the first choice that fails; the others are aborted then."""
    choices = [ChoiceText() for _ in generation.requests]
    num_alive = len(choices)
    async with open_choices(client, generation.requests) as events:
        while num_alive:
            index, event = await events.get()
            match event:
                case TokenDelta():
                    choices[index].text.append(event.text)
                    choices[index].logprobs.extend(event.logprobs)
                case Finished():
                    choices[index].reason = event.reason
                    choices[index].usage = event.usage
                    num_alive -= 1
                case Failed():
                    raise event.error
    usages = [choice.usage for choice in choices if choice.usage is not None]
    whole = generation.shape.whole(choices, total_usage(usages, generation.choices_per_prompt))
    return {**whole, "preempt": park_record(usages)} if generation.tells_parks else whole
