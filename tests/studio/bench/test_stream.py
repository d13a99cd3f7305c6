"""The measuring client against servers that are made up: every way of cutting a stream gives the same reply."""

from __future__ import annotations

import asyncio
import json

import pytest

from studio.bench.stream import Ask, Reply, stream_completion

ASK = Ask(prompt="word", reply_tokens=3, api_key="secret")


def event(text: str, **more: object) -> str:
    choice = {"index": 0, "text": text, "finish_reason": None, **more}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


STREAM = (
    ": preempted\n\n"
    + event("a")
    + event("")
    + event("ü")
    + event("", finish_reason="length")
    + 'data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}\n\n'
    + "data: [DONE]\n\n"
)


def ask(pieces: list[bytes], *, status: str = "200 OK", chunked: bool = True) -> Reply:
    """Ask a server that answers in these pieces."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heard.append(head)
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        heard.append(await reader.readexactly(length))
        kind = "Transfer-Encoding: chunked\r\n" if chunked else ""
        writer.write(f"HTTP/1.1 {status}\r\n{kind}\r\n".encode())
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()
        if chunked and pieces[-1:] != [b"broken"]:
            writer.write(b"0\r\n\r\n")
        writer.close()

    async def both() -> Reply:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await asyncio.wait_for(stream_completion(f"http://127.0.0.1:{port}", ASK), 30)

    reply = asyncio.run(both())
    assert b"authorization: bearer secret" in heard[0].lower()
    assert json.loads(heard[1])["ignore_eos"] is True
    return reply


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_stream_is_read_however_it_is_cut(size: int, chunked: bool) -> None:
    data = STREAM.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    reply = ask(pieces, chunked=chunked)
    assert reply.error is None
    assert len(reply.token_times_s) == 2
    assert [note for _, note in reply.notes] == ["preempted"]
    assert (reply.prompt_tokens, reply.completion_tokens) == (5, 3)
    assert reply.text == "aü"
    assert reply.is_complete(3)
    assert not reply.is_complete(4)
    assert reply.asked_s < reply.token_times_s[0] <= reply.token_times_s[1]


def test_the_speed_of_decoding_leaves_out_the_wait_for_the_first_token() -> None:
    reply = Reply(0.0, token_times_s=[10.0, 10.5, 11.0], completion_tokens=21)
    assert reply.decode_tokens_s == 20
    assert Reply(0.0, token_times_s=[10.0], completion_tokens=1).decode_tokens_s == 0
    assert Reply(0.0).decode_tokens_s == 0


def test_an_error_in_the_stream_or_instead_of_it_is_kept() -> None:
    inside = ask([event("a").encode(), b'data: {"error": {"message": "full"}}\n\n'])
    assert inside.error == '{"message": "full"}'
    refused = ask([b'{"error": "no"}'], status="503 Busy", chunked=False)
    assert refused.error == 'HTTP 503: {"error": "no"}'
    assert not refused.is_complete(0)


def test_a_stream_that_breaks_off_is_an_error() -> None:
    reply = ask([event("a").encode(), b"broken"])
    assert reply.error is not None
    assert reply.error.startswith("the stream broke off")
    assert len(reply.token_times_s) == 1
