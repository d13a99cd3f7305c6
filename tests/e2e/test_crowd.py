"""A hundred connections at once, half of them badly behaved: the others are served, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from fakes.parking_matrix import await_rest, figures_of
from fakes.raw_client import until
from fakes.serving import serving
from fakes.tiny_files import write_tiny_gguf

NUM_WELL, NUM_SLOW, NUM_VANISHING, NUM_HALF_OPEN = 50, 20, 20, 10
TIMEOUT_S = 200.0
SMALL_BUFFER = 4096


@dataclass(frozen=True, slots=True)
class Server:
    """A server of its own and its process."""

    address: str
    process: psutil.Process

    @property
    def place(self) -> tuple[str, int]:
        url = httpx.URL(self.address)
        assert url.port is not None
        return url.host, url.port


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    model = write_tiny_gguf(tmp_path)
    others = set(psutil.Process().children())
    with serving("-m", str(model), "-c", "1024", "-np", "8") as address:
        (process,) = (one for one in psutil.Process().children() if one not in others)
        yield Server(address, process)


def asked(index: int, **fields: object) -> dict[str, object]:
    """A completion that has a beginning of its own, and so pages of its own."""
    return {
        "prompt": f"{index} is the number of this story, and it goes on like that.",
        "temperature": 0,
        "max_tokens": 40,
        "ignore_eos": True,
        **fields,
    }


def streamed(index: int) -> dict[str, object]:
    """Large on the wire."""
    return asked(index, stream=True, logprobs=20, max_tokens=120)


def text_of(events: bytes) -> str:
    lines = [line for line in events.decode().split("\n") if line.startswith("data: {")]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    return "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])


async def knock(server: Server, body: dict[str, object], *, close: bool = True) -> Reader:
    """Send a request in HTTP/1.0, whose answer is unframed, with a small buffer for it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, server.place)
    reader, writer = await asyncio.open_connection(sock=connection, limit=SMALL_BUFFER)
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.0\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    return Reader(reader, writer)


@dataclass(frozen=True, slots=True)
class Reader:
    """The client's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        data = await self.reader.read()
        self.writer.close()
        return data

    def vanish(self) -> None:
        """No farewell: what is unread or unsent is thrown away, and the peer is told so."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def behave(server: Server, client: httpx.AsyncClient, index: int) -> str:
    """Whole or streamed, in turns."""
    url = f"{server.address}/v1/completions"
    if index % 2:
        return str((await client.post(url, json=asked(index))).json()["choices"][0]["text"])
    return text_of((await client.post(url, json=asked(index, stream=True))).content)


async def read_slowly(server: Server, index: int, others_are_done: asyncio.Event) -> str:
    """The beginning at once, the rest when everybody else is done."""
    connection = await knock(server, streamed(index))
    beginning = await connection.reader.readuntil(b"\n\n")
    await others_are_done.wait()
    return text_of(beginning + await connection.rest())


async def vanish(server: Server, index: int) -> None:
    """In line, or in the middle of the answer, in turns."""
    connection = await knock(server, streamed(index))
    if index % 2:
        await connection.reader.readuntil(b"\n\n")
    else:
        await connection.writer.drain()
    connection.vanish()


async def half_open(server: Server, index: int, others_are_done: asyncio.Event) -> None:
    """A head or a body that does not end, in turns."""
    _, writer = await asyncio.open_connection(*server.place)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n")
    if index % 2:
        writer.write(b'Content-Length: 100\r\n\r\n{"prompt"')
    await others_are_done.wait()
    writer.close()


async def crowd(server: Server) -> tuple[list[str], list[str]]:
    """All at once; the texts of the well-behaved and of the slow."""
    others_are_done = asyncio.Event()
    async with (
        asyncio.timeout(TIMEOUT_S),
        httpx.AsyncClient(timeout=TIMEOUT_S, limits=httpx.Limits()) as client,
        asyncio.TaskGroup() as group,
    ):
        indices = iter(range(1000))
        well = [group.create_task(behave(server, client, next(indices))) for _ in range(NUM_WELL)]
        slow = [
            group.create_task(read_slowly(server, next(indices), others_are_done))
            for _ in range(NUM_SLOW)
        ]
        gone = [group.create_task(vanish(server, next(indices))) for _ in range(NUM_VANISHING)]
        for _ in range(NUM_HALF_OPEN):
            group.create_task(half_open(server, next(indices), others_are_done))
        await asyncio.wait([*well, *gone])
        others_are_done.set()
    return [task.result() for task in well], [task.result() for task in slow]


async def alone(server: Server, body: dict[str, object]) -> str:
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        answer = await client.post(f"{server.address}/v1/completions", json=body)
        return str(answer.json()["choices"][0]["text"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="counts file descriptors")
def test_a_hundred_connections_half_of_them_badly_behaved(server: Server) -> None:
    async def one_by_one(bodies: list[dict[str, object]]) -> list[str]:
        return [await alone(server, body) for body in bodies]

    await_rest(server.address)
    num_files = server.process.num_fds()
    well, slow = asyncio.run(crowd(server))
    await_rest(server.address)
    figures = figures_of(server.address)
    assert figures["pool_pages_free"] + figures["pool_pages_reusable"] == figures["pool_pages"]
    assert figures["preempt_ram_bytes"] == figures["requests_preempted"] == 0
    assert figures["requests_processing"] == figures["requests_deferred"] == 0
    assert figures["n_preempt_total"] > 0, "they all had room"
    until(lambda: server.process.num_fds() <= num_files, "all connections are closed")
    bodies = [asked(index) for index in range(NUM_WELL)]
    assert well == asyncio.run(one_by_one(bodies))
    bodies = [asked(NUM_WELL + index, max_tokens=120) for index in range(NUM_SLOW)]
    assert slow == asyncio.run(one_by_one(bodies))
