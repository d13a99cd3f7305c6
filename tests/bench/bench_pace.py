"""Gaps in three running chats beside a new prompt of 340 tokens, and first tokens of four prompts asked together.

Run: layby serve -m MODEL -np 4 -c 8192, then python tests/bench/bench_pace.py ADDRESS. Not collected by pytest.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field

import httpx

CHATS, LATE_PROMPTS, ROUNDS = 3, 4, 3
PAUSE_S = 0.5
WORDS = (
    "river",
    "stone",
    "house",
    "small",
    "boat",
    "morning",
    "letters",
    "weather",
    "valley",
    "road",
)


@dataclass
class Chat:
    """One streamed reply; `times` begins with the moment it was asked, then has one for each piece of text."""

    prompt_tokens: int
    reply_tokens: int
    times: list[float] = field(default_factory=list)
    is_running: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, client: httpx.AsyncClient) -> None:
        words = " ".join(random.choices(WORDS, k=self.prompt_tokens))
        body = {
            "messages": [{"role": "user", "content": words}],
            "max_tokens": self.reply_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        self.times.append(time.perf_counter())
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: {") and _has_text(line):
                    self.times.append(time.perf_counter())
                if len(self.times) > 20:
                    self.is_running.set()

    @property
    def first_token_s(self) -> float:
        return self.times[1] - self.times[0]


def _has_text(line: str) -> bool:
    choices = json.loads(line.removeprefix("data: "))["choices"]
    return bool(choices and choices[0]["delta"].get("content"))


async def gaps(client: httpx.AsyncClient) -> None:
    """Chats that run, and prompts that come in between."""
    chats = [Chat(40, 600) for _ in range(CHATS)]
    tasks = [asyncio.create_task(chat.run(client)) for chat in chats]
    await asyncio.gather(*(chat.is_running.wait() for chat in chats))
    late = []
    for _ in range(LATE_PROMPTS):
        await asyncio.sleep(PAUSE_S)
        late.append(Chat(325, 1))
        await late[-1].run(client)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    alone, beside = [], []
    for chat in chats:
        for start, end in zip(chat.times[20:], chat.times[21:], strict=False):
            is_beside = any(start <= one.times[1] and end >= one.times[0] for one in late)
            (beside if is_beside else alone).append((end - start) * 1e3)
    for name, values in (("without a prompt", alone), ("beside a prompt", beside)):
        values.sort()
        middle, high = values[len(values) // 2], values[int(0.95 * len(values))]
        print(f"gap {name:<16} {middle:6.1f} p95 {high:6.1f} max {values[-1]:6.1f} ms")
    print(f"ratio of medians {statistics.median(beside) / statistics.median(alone):.2f}")
    firsts = ", ".join(f"{one.first_token_s * 1e3:.0f}" for one in late)
    print(f"first token of the prompts beside them: {firsts} ms")


async def together(client: httpx.AsyncClient) -> None:
    """Four prompts of some 300 tokens at once."""
    for _ in range(ROUNDS):
        chats = [Chat(285, 30) for _ in range(4)]
        await asyncio.gather(*(chat.run(client) for chat in chats))
        firsts = sorted(chat.first_token_s * 1e3 for chat in chats)
        print(f"four together: first token {statistics.mean(firsts):.0f}, last {firsts[-1]:.0f} ms")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="as in http://127.0.0.1:8484")
    async with httpx.AsyncClient(base_url=parser.parse_args().address, timeout=300) as client:
        await gaps(client)
        await together(client)


if __name__ == "__main__":
    asyncio.run(main())
