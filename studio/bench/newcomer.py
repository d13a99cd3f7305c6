"""What running chats notice of a new one whose prompt has to be read. The client runs on a loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain

from studio.bench.plan import BenchPlan
from studio.bench.scenarios import make_prompts
from studio.bench.stream import Ask, Reply, stream_into
from studio.models.errors import StudioError

_POLL_S = 0.002
_SETTLE_S = 0.5
"""Until a server has noticed that everybody has hung up."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A chat that came to others."""

    hold_up_s: float
    """The longest gap between two pieces of text of any of the others while it was read."""
    first_token_s: float
    """How long it waited itself."""


def longest_gap(running: Sequence[Reply], newcomer: Reply) -> float:
    """The longest gap of any of the running that reaches into the newcomer's wait; 0 where there is none."""
    begin, end = newcomer.asked_s, newcomer.token_times_s[0]
    gaps = chain.from_iterable(reply.gaps for reply in running)
    return max((stop - start for start, stop in gaps if start < end and stop > begin), default=0.0)


def time_newcomer(url: str, plan: BenchPlan, *, seed: int) -> Arrival:
    """Let all chats but one run, then send the last; all hang up once it has begun. Raises StudioError if one fails."""
    return asyncio.run(_time(url, plan, seed))


async def _time(url: str, plan: BenchPlan, seed: int) -> Arrival:
    *first, last = (
        Ask(prompt=prompt, reply_tokens=plan.load.reply_tokens, api_key=plan.api_key)
        for prompt in make_prompts(plan.load, seed)
    )
    begun = plan.lengths.begun_tokens
    async with AsyncExitStack() as stack:
        chats: list[_Chat] = []
        for ask in first:
            chats.append(await stack.enter_async_context(_Chat(url, ask)))
        await _until(chats, begun)
        newcomer = await stack.enter_async_context(_Chat(url, last))
        await _until([newcomer], 1)
        # Each has its next piece of text, so that gaps which began in the meantime have their end.
        counts = [len(chat.reply.token_times_s) for chat in chats]
        for chat, count in zip(chats, counts, strict=True):
            await _until([chat], count + 1)
    await asyncio.sleep(_SETTLE_S)
    return Arrival(
        longest_gap([chat.reply for chat in chats], newcomer.reply), newcomer.reply.first_token_s
    )


class _Chat:
    """A chat that is heard in a task of its own, and hung up at the end."""

    def __init__(self, url: str, ask: Ask) -> None:
        self.reply = Reply(time.perf_counter())
        self.task = asyncio.create_task(stream_into(self.reply, url, ask))

    async def __aenter__(self) -> _Chat:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def _until(chats: Sequence[_Chat], num_tokens: int) -> None:
    """Wait until each has so many pieces of text, or its last. Raises StudioError where one failed or got none."""
    for chat in chats:
        while len(chat.reply.token_times_s) < num_tokens and not chat.task.done():
            await asyncio.wait([chat.task], timeout=_POLL_S)
        trouble = chat.reply.error or (chat.task.done() and chat.task.exception())
        if trouble or not chat.reply.token_times_s:
            raise StudioError(f"a chat beside others failed: {trouble or 'it got no text'}")
