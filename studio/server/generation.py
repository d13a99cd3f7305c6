"""One wire request under way: its engine requests and their events, merged. Server thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from engine.api import (
    Embedded,
    Failed,
    Finished,
    FinishReason,
    PromptRead,
    Request,
    RequestEvent,
    TokenDelta,
)
from engine.client import EngineClient
from engine.errors import WaitedTooLong
from studio.models.server_keys import ANONYMOUS, Caller
from studio.server.errors import request_cancelled
from studio.server.framing import Json
from studio.server.reply_parts import ReplyParts
from studio.server.reply_shape import ReplyEnd, ReplyShape
from studio.server.request_rows import RequestNote
from studio.server.share_gate import Place, ShareGate

_GATE_RETRY_S = 5.0

ChoiceEvents = asyncio.Queue[tuple[int, RequestEvent]]
"""Events with the index of their choice; those of one choice are in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What the engine is asked for one wire request."""

    requests: tuple[Request, ...]
    """One per choice, in order of index."""
    choices_per_prompt: int
    tells_parks: bool = False
    """See ReplyEnd."""
    caller: Caller = ANONYMOUS
    note: RequestNote
    """Hears every event, for the request's row."""

    def end(self, choices: Sequence[Finished]) -> ReplyEnd:
        """What the reply took, whose choices have all ended; they are in order of index."""
        return ReplyEnd(
            usages=tuple(choice.usage for choice in choices),
            choices_per_prompt=self.choices_per_prompt,
            tells_parks=self.tells_parks,
        )

    def told_as(self, shape: ReplyShape) -> Generation:
        return Generation(
            requests=self.requests,
            choices_per_prompt=self.choices_per_prompt,
            tells_parks=self.tells_parks,
            caller=self.caller,
            note=self.note,
            shape=shape,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Asking):
    """The same, and how it is told."""

    shape: ReplyShape


@contextmanager
def open_choices(client: EngineClient, generation: Asking, place: Place) -> Iterator[ChoiceEvents]:
    """Submit all requests; leaving the block aborts those that have not ended."""
    events: ChoiceEvents = asyncio.Queue()

    def hear(index: int, event: RequestEvent) -> None:
        generation.note.hear(event)
        place.hear(event)
        if isinstance(event, PromptRead):
            event = _as_delta(event)
        events.put_nowait((index, event))

    with ExitStack() as stack:
        for index, request in enumerate(generation.requests):
            stack.enter_context(client.hearing(request, partial(hear, index)))
        yield events


def _as_delta(read: PromptRead) -> TokenDelta:
    """The prompt's tokens as the first of the reply, with no text: replies tell them the same way."""
    return TokenDelta(request_id=read.request_id, text="", token_ids=(), logprobs=read.tokens)


@contextmanager
def at_the_gate(gate: ShareGate, generation: Asking) -> Iterator[Place]:
    """A place at the gate; the request's row says when it is held back."""
    with gate.place(generation.caller, generation.requests) as place:
        if not place.is_in:
            generation.note.hold_back(is_held=True)
        yield place


async def pass_gate(place: Place, generation: Asking) -> None:
    """Wait until the key's share has room. Raises WaitedTooLong after the request's `max_wait_s`."""
    if place.is_in:
        return
    limit_s = generation.requests[0].max_wait_s
    try:
        async with asyncio.timeout(limit_s):
            await place.wait()
    except TimeoutError:
        raise WaitedTooLong(
            f"the key {generation.caller.name!r} holds its share of the pool, {generation.caller.share_percent} %, and "
            f"this request waited the {limit_s:g} s that it was willing to; ask again later",
            retry_after_s=_GATE_RETRY_S,
        ) from None
    generation.note.hold_back(is_held=False)


async def whole_reply(client: EngineClient, generation: Generation, gate: ShareGate) -> Json:
    """The reply in one piece. Raises as `gather`."""
    return generation.shape.whole(*await gather(client, generation, gate))


async def gather(
    client: EngineClient, asking: Asking, gate: ShareGate
) -> tuple[list[ReplyParts], ReplyEnd]:
    """All choices, once they have ended, and what they took.

    Raises the EngineError of the first choice that fails; the others are aborted then.
    """
    with at_the_gate(gate, asking) as place:
        await pass_gate(place, asking)
        return await _collect(client, asking, place)


def check_end(event: Finished) -> None:
    """Raises ApiError for a request that something other than its own client ended."""
    if event.reason is FinishReason.ABORTED:
        raise request_cancelled()


async def _collect(
    client: EngineClient, asking: Asking, place: Place
) -> tuple[list[ReplyParts], ReplyEnd]:
    choices = [ReplyParts() for _ in asking.requests]
    ends: dict[int, Finished] = {}
    with open_choices(client, asking, place) as events:
        while len(ends) < len(choices):
            index, event = await events.get()
            match event:
                case TokenDelta():
                    choices[index].add(event)
                case Embedded():
                    choices[index].embedding = event.values
                case Finished():
                    check_end(event)
                    choices[index].finished = ends[index] = event
                case Failed():
                    raise event.error
    return choices, asking.end([ends[index] for index in range(len(choices))])
