"""What some readers of lines take for a line's end never stands raw in an answer: Python's splitlines knows eight."""

from __future__ import annotations

import json

import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, REPLIES, assert_error, on_a_loop, open_client

TEXT = "one\u2028two\u2029three\x85four\vfive\fsix\x1cseven"
ESCAPED = r"one\u2028two\u2029three\u0085four\u000bfive\fsix\u001cseven"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", list(REPLIES))
@on_a_loop
async def test_no_reply_is_cut_by_a_reader_of_lines(path: str, *, stream: bool) -> None:
    async with open_client(FakeEngine(reply=TEXT)) as client:
        answer = await client.post(path, json={**REPLIES[path], "stream": stream})
    assert answer.status_code == 200, answer.text
    assert ESCAPED in answer.text
    lines = answer.text.splitlines()
    assert len(lines) == len(answer.content.splitlines())
    data = [line.partition("data: ")[2] if line.startswith("data: ") else line for line in lines]
    documents = [json.loads(line) for line in data if line.startswith("{")]
    assert documents
    told = json.dumps(documents, ensure_ascii=False)
    assert json.dumps(TEXT, ensure_ascii=False)[1:-1] in told


@on_a_loop
async def test_nor_is_an_error_that_repeats_what_was_sent() -> None:
    body = {"messages": [{"role": "user\u2028\x85", "content": "x"}], "model": "a\u2029b"}
    async with open_client(FakeEngine()) as client:
        answer = await client.post(CHAT, json=body)
        named = await client.post(CHAT, json={**REPLIES[CHAT], "model": "a\u2029b\x85"})
    assert answer.status_code == 400
    assert_error(named, 404, "model_not_found")
    for each in (answer, named):
        assert len(each.text.splitlines()) == 1
