"""Which gaps are put down to a chat that came to others, and what a chat that fails does to the measuring."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from engine.api import LoadOptions
from studio.bench.newcomer import Arrival, longest_gap, time_newcomer
from studio.bench.plan import QUICK_LENGTHS, QUICK_LOAD, BenchPlan
from studio.bench.stream import Reply
from studio.models.errors import StudioError

PLAN = BenchPlan(
    model=Path("tiny.gguf"), model_name="tiny", model_bytes=1, storage="F32", window_tokens=512,
    options=LoadOptions(), load=QUICK_LOAD, lengths=QUICK_LENGTHS,
)  # fmt: skip


def test_only_gaps_that_reach_into_the_newcomers_wait_count() -> None:
    newcomer = Reply(10.0, token_times_s=[12.0, 13.0])
    running = [
        Reply(0.0, token_times_s=[1.0, 5.0, 9.9, 10.2, 10.4]),
        Reply(0.0, token_times_s=[9.5, 10.1, 11.9, 12.5, 20.0]),
    ]
    assert longest_gap(running, newcomer) == pytest.approx(1.8)
    assert longest_gap([Reply(0.0, token_times_s=[1.0, 2.0])], newcomer) == 0


def event(text: str) -> bytes:
    return b'data: {"choices": [{"text": "%s"}]}\n\n' % text.encode()


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def newcomer_of(answer: Answer) -> Arrival:
    """Measure a server that answers like this."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        return await asyncio.to_thread(time_newcomer, f"http://127.0.0.1:{port}", PLAN, seed=1)


def test_a_newcomer_is_sent_once_all_others_are_under_way_and_all_hang_up() -> None:
    """The server gives pieces of text for as long as somebody listens, and the last who comes a few."""
    counts: list[int] = []
    ended = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal ended
        place = len(counts)
        if place == QUICK_LOAD.num_chats - 1:
            assert min(counts) >= QUICK_LENGTHS.begun_tokens
        counts.append(0)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                counts[place] += 1
                writer.write(event("a"))
                await writer.drain()
                await asyncio.sleep(0)
        except ConnectionError:
            ended += 1
        finally:
            writer.close()

    arrival = asyncio.run(newcomer_of(answer))
    assert arrival.hold_up_s > 0
    assert arrival.first_token_s > 0
    assert len(counts) == ended == QUICK_LOAD.num_chats


def test_a_chat_that_fails_is_an_error() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + event("a") + b'data: {"error": "full"}\n\n')
        writer.close()

    with pytest.raises(StudioError, match='a chat beside others failed: "full"'):
        asyncio.run(newcomer_of(answer))
