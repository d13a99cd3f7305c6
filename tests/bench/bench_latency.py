"""What the server adds to a token: milliseconds from the engine's event to the socket, with streams at full speed.

Run: python tests/bench/bench_latency.py MODEL [--streams N] [--tokens N]. Not collected by pytest; prints a table.
Engine and server share a process, as they always do; the readers have one of their own. Beside each token a bare
wake-up of the server's loop is timed, sent by the engine's thread at the same moment: what a busy machine costs anyone.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from engine.api import EngineEvent, LoadModel, LoadOptions, TokenDelta
from engine.factory import create_engine
from fakes.listening import Ear
from studio.models.server_settings import ServerSettings
from studio.server.connection import GuardedConnection
from studio.server.thread import ServerThread

GOAL_MS = 3.0
TOKENS_LEFT_OUT = 20
"""At the beginning of each stream, while others are still being read."""
_TOKEN = re.compile(rb'"id":"([^"]+)".*?"text":"(?!")')


class Stopwatch:
    """Times of tokens, from the engine's thread to the server's loop."""

    def __init__(self) -> None:
        self.tokens_ms: list[float] = []
        self.wakes_ms: list[float] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self._told: defaultdict[str, deque[float]] = defaultdict(deque)
        self._num_heard: defaultdict[str, int] = defaultdict(int)

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        """On the engine's thread, before the server's client hears the same."""
        now_s = time.perf_counter()
        for event in events:
            if isinstance(event, TokenDelta) and event.text:
                self._told[event.request_id.rpartition("-")[0]].append(now_s)
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake, now_s)

    def watch_connections(self) -> None:
        """Learn the server's loop from its connections."""
        made = GuardedConnection.connection_made

        def connection_made(connection: GuardedConnection, transport: asyncio.Transport) -> None:
            self.loop = connection.loop
            made(connection, transport)

        GuardedConnection.connection_made = connection_made  # type: ignore[method-assign]

    def watch_writes(self) -> None:
        """Note when a piece of an answer has been handed to the socket."""
        send = RequestResponseCycle.send

        async def timed(cycle: RequestResponseCycle, message: Any) -> None:
            await send(cycle, message)
            now_s = time.perf_counter()
            if found := _TOKEN.search(message.get("body", b"")):
                self._wrote(found[1].decode(), now_s)

        RequestResponseCycle.send = timed  # type: ignore[method-assign,assignment]

    def _wrote(self, reply_id: str, now_s: float) -> None:
        told_s = self._told[reply_id].popleft()
        self._num_heard[reply_id] += 1
        if self._num_heard[reply_id] > TOKENS_LEFT_OUT:
            self.tokens_ms.append((now_s - told_s) * 1e3)

    def _wake(self, told_s: float) -> None:
        self.wakes_ms.append((time.perf_counter() - told_s) * 1e3)


def read_streams(address: str, num_streams: int, tokens: int) -> None:
    """The readers: take what comes and throw it away."""
    import httpx

    def read(index: int) -> None:
        body = {
            "prompt": f"Story {index}. Once upon a time",
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
        }
        with httpx.stream("POST", f"{address}/v1/completions", json=body, timeout=600) as answer:
            for _ in answer.iter_raw():
                pass

    threads = [threading.Thread(target=read, args=(index,)) for index in range(num_streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(model: Path, num_streams: int, tokens: int) -> tuple[Stopwatch, float]:
    """Serve the model and have the streams read; also gives tokens per second."""
    watch = Stopwatch()
    watch.watch_connections()
    watch.watch_writes()
    engine = create_engine()
    engine.subscribe(watch.hear)
    server = ServerThread(engine, ServerSettings(port=0))
    ear = Ear(engine)
    server.start()
    try:
        options = LoadOptions(pool_tokens=num_streams * (tokens + 64), parallel=num_streams)
        engine.control(LoadModel(path=model, name="measured", options=options))
        ear.wait_ready()
        ear.close()
        start_s = time.perf_counter()
        readers = [sys.executable, __file__, "--read", server.url]
        sizes = ["--streams", str(num_streams), "--tokens", str(tokens)]
        subprocess.run([*readers, *sizes], check=True)
        return watch, num_streams * tokens / (time.perf_counter() - start_s)
    finally:
        server.stop()
        engine.shutdown()


def row(name: str, values: list[float]) -> str:
    cuts = statistics.quantiles(values, n=1000)
    shown = [*(cuts[permille - 1] for permille in (500, 900, 990, 999)), max(values)]
    return f"{name:28}{''.join(f'{value:8.3f}' for value in shown)}{len(values):9,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=600)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.read:
        read_streams(asked.read, asked.streams, asked.tokens)
        return
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    watch, speed = measure(asked.model, asked.streams, asked.tokens)
    p99 = statistics.quantiles(watch.tokens_ms, n=100)[98]
    bare = statistics.quantiles(watch.wakes_ms, n=100)[98]
    if asked.json:
        print(json.dumps({"p99_ms": p99, "bare_p99_ms": bare, "tokens_s": speed, "load": load}))
        return
    print(
        f"{asked.streams} streams, {speed:,.0f} tokens/s with the start; load before: {load:.1f}\n"
    )
    print(f"{'milliseconds':28}{'p50':>8}{'p90':>8}{'p99':>8}{'p99.9':>8}{'most':>8}{'count':>9}")
    print(row("event to socket", watch.tokens_ms))
    print(row("a bare wake-up of the loop", watch.wakes_ms))
    print(
        f"\np99 {p99:.2f} ms, goal {GOAL_MS} ms: {p99 / GOAL_MS:.2f}; by a bare wake-up's: {p99 / bare:.2f}"
    )


if __name__ == "__main__":
    main()
