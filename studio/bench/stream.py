"""Asks a server for one streamed completion and notes when each piece of it arrives.

A plain socket and no HTTP library: at some hundred pieces a second a client's own work would take processor time from
the server beside it. Runs on the caller's asyncio loop.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_MOST_ERROR_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A completion of a text at temperature 0, going on past the model's own end."""

    prompt: str
    reply_tokens: int
    api_key: str | None = None

    def body(self) -> bytes:
        wire = {
            "prompt": self.prompt,
            "max_tokens": self.reply_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return json.dumps(wire).encode()


@dataclass(slots=True)
class Reply:
    """What arrived. Times are those of `time.perf_counter`."""

    asked_s: float
    token_times_s: list[float] = field(default_factory=list)
    """When each piece of text came."""
    pieces: list[str] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    """Comments of the stream, and when they came."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None

    def is_complete(self, reply_tokens: int) -> bool:
        return self.error is None and self.completion_tokens >= reply_tokens

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def decode_tokens_s(self) -> float:
        """Tokens per second from the first piece of text to the last; 0 where there are not two."""
        seconds = self.token_times_s[-1] - self.token_times_s[0] if self.token_times_s else 0.0
        return (self.completion_tokens - 1) / seconds if seconds else 0.0

    @property
    def first_token_s(self) -> float:
        """Seconds until the first piece of text; IndexError where there is none."""
        return self.token_times_s[0] - self.asked_s

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """From each piece of text to the next."""
        return list(zip(self.token_times_s, self.token_times_s[1:], strict=False))


async def stream_completion(url: str, ask: Ask) -> Reply:
    """Ask and listen to the end. What goes wrong is in `Reply.error`; raises OSError where nobody listens."""
    reply = Reply(time.perf_counter())
    await stream_into(reply, url, ask)
    return reply


async def stream_into(reply: Reply, url: str, ask: Ask) -> None:
    """As `stream_completion`, for who looks at the reply while it grows; cancelled, it hangs up."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(_request(address.netloc, ask))
        status, is_chunked = await _read_head(reader)
        if status != 200:
            answer = await reader.read(_MOST_ERROR_BYTES)
            reply.error = f"HTTP {status}: {answer.decode(errors='replace')}"
        else:
            await _listen(_body(reader, is_chunked=is_chunked), reply)
    except (asyncio.IncompleteReadError, ValueError) as error:
        reply.error = f"the stream broke off: {error}"
    finally:
        writer.close()


def _request(netloc: str, ask: Ask) -> bytes:
    body = ask.body()
    lines = [
        "POST /v1/completions HTTP/1.1",
        f"Host: {netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if ask.api_key:
        lines.append(f"Authorization: Bearer {ask.api_key}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status, and whether the body comes in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    return int(head.split(" ", 2)[1]), "transfer-encoding: chunked" in head


async def _body(reader: asyncio.StreamReader, *, is_chunked: bool) -> AsyncIterator[bytes]:
    if not is_chunked:
        while data := await reader.read(1 << 16):
            yield data
        return
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)


async def _listen(body: AsyncIterator[bytes], reply: Reply) -> None:
    rest = b""
    async for data in body:
        now_s = time.perf_counter()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b":"):
                reply.notes.append((now_s, line[1:].strip().decode(errors="replace")))
            elif line.startswith(b"data: {"):
                _take(json.loads(line[6:]), reply, now_s)


def _take(event: dict[str, Any], reply: Reply, now_s: float) -> None:
    if event.get("error"):
        reply.error = json.dumps(event["error"])
    if usage := event.get("usage"):
        reply.prompt_tokens = usage["prompt_tokens"]
        reply.completion_tokens = usage["completion_tokens"]
    for choice in event.get("choices") or ():
        if choice.get("text"):
            reply.token_times_s.append(now_s)
            reply.pieces.append(choice["text"])
