"""S5 and S14 in the real window: programs of every kind beside chats that fill the pool, and the rows they leave.

What each client makes of the answers is tested where no window is (tests/e2e/clients, tests/studio/server).
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.api import Origin, SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.shots import head, shoot
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import Message
from studio.models.chat_settings import ChatSettings
from studio.models.request_log import RequestState
from studio.models.server_keys import KeyPlan
from studio.views.actions import CommandId
from studio.views.server.requests_model import Column
from studio.views.server.server_window import ServerPages, ServerWindow

Play = Callable[[Coroutine[Any, Any, None]], None]
SETTINGS = ChatSettings(
    sampling=SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS), max_tokens=200
)
MODEL, CHAT = "tiny-llama-F32", "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Hello"}]

NODE = """
const [address, body] = [process.argv[1], JSON.parse(process.argv[2])];
const ask = (more) => fetch(address + "/v1/chat/completions", {
  method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({...body, ...more}),
}).then((answer) => answer.text());
Promise.all([ask({stream: true}), ask({})]).then(([stream, whole]) => {
  const lines = stream.split("\\n").filter((line) => line.startsWith("data: {"));
  const choices = lines.flatMap((line) => JSON.parse(line.slice(6)).choices);
  const ends = choices.map((one) => one.finish_reason).filter(Boolean);
  console.log(JSON.stringify([...ends, ...JSON.parse(whole).choices.map((one) => one.finish_reason)]));
});
"""
LANGCHAIN = """
import json, sys
from langchain_openai import ChatOpenAI
address, body = sys.argv[1], json.loads(sys.argv[2])
chat = ChatOpenAI(base_url=address + "/v1", api_key="none", model=body["model"], max_tokens=body["max_tokens"])
prompt = body["messages"][0]["content"]
ends = [one.response_metadata.get("finish_reason") for one in chat.stream(prompt)]
ends.append(chat.invoke(prompt).response_metadata["finish_reason"])
print(json.dumps([end for end in ends if end]))
"""


def body(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": MESSAGES, "max_tokens": 40, **more}


@asynccontextmanager
async def full_pool(tmp_path: Path) -> AsyncIterator[tuple[RealWindow, list[Message]]]:
    """A window with a server whose pool three chats are about to fill; the engine stands."""
    model = write_tiny_gguf(tmp_path / "model")
    flags = {"engine__ctx_size": 512, "engine__parallel": 5, "server__port": 0}
    async with open_real(tmp_path / "home", **flags) as real:
        assert await real.services.models.load(str(model))
        await real.services.server.start()
        real.window.commands[CommandId.POOL].trigger()
        replies = await real.send_at_once(SETTINGS, ("Lisbon", "Children", "Recipes"))
        await real.run_until(3, 60)
        yield real, replies
        real.gate.open()
        await until(lambda: not any(one.status.is_alive for one in replies))


def address_of(real: RealWindow) -> str:
    assert real.services.server.address is not None
    return real.services.server.address


def num_programs(real: RealWindow) -> int:
    return sum(run.origin is Origin.API for run in real.services.runs.snapshot().runs)


def run_program(*command: str) -> list[str]:
    """What the program printed, as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    ends: list[str] = json.loads(done.stdout)
    return ends


@pytest.mark.parametrize("client", ["node", "langchain"])
def test_s5_clients_with_their_own_patience_are_served_beside_the_chats(
    play: Play, tmp_path: Path, client: str
) -> None:
    node = shutil.which("node")
    if client == "node" and node is None:
        pytest.skip("there is no Node here")
    if client == "langchain" and importlib.util.find_spec("langchain_openai") is None:
        pytest.skip("langchain-openai is not installed")
    program = (
        (node or "node", "-e", NODE) if client == "node" else (sys.executable, "-c", LANGCHAIN)
    )

    async def story() -> None:
        async with full_pool(tmp_path) as (real, replies):
            asked = asyncio.create_task(
                asyncio.to_thread(run_program, *program, address_of(real), json.dumps(body()))
            )
            await until(lambda: real.services.server.requests_under_way() or asked.done())
            real.gate.shut_when(lambda: num_programs(real) > 0)
            real.gate.open()
            await until(lambda: real.gate.is_shut or asked.done())
            await real.shoot(f"s5-{client}")
            real.gate.open()
            assert set(await asked) <= {"stop", "length"}
            assert len(await asked) == 2
            rows = real.services.server.log.rows
            await until(lambda: [row.state for row in rows] == [RequestState.DONE] * len(rows))
            await until(lambda: not any(one.status.is_alive for one in replies))
            assert any(one.stats.parked_s > 0 for one in replies)

    play(story())


def strict_lines(address: str, heard: list[str]) -> None:
    """A client that takes every line for `data:` and has asked not to be sent comments."""
    headers = {"x-layby-heartbeat": "delta"}
    asked = {"json": body(stream=True), "headers": headers, "timeout": 120}
    with httpx.stream("POST", f"{address}{CHAT}", **asked) as answer:
        for line in answer.iter_lines():
            if line:
                heard.append(line)


def test_s5_a_client_that_knows_no_comments_gets_empty_deltas(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with full_pool(tmp_path) as (real, _):
            heard: list[str] = []
            asked = asyncio.create_task(asyncio.to_thread(strict_lines, address_of(real), heard))
            await until(lambda: len(heard) >= 2)  # the engine stands: these are no tokens
            await real.shoot("s5-strict")
            real.gate.open()
            await asked
            assert all(line.startswith("data: ") for line in heard)
            chunks = [json.loads(line[6:]) for line in heard if line != "data: [DONE]"]
            choices = [one["choices"][0] for one in chunks if one["choices"]]
            assert choices[-1]["finish_reason"] in ("stop", "length")
            assert not any(one["delta"].get("content") for one in choices[:2])

    play(story())


WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string", "maxLength": 3}},
        "required": ["town"],
    },
}
TOOL = {"type": "function", "function": WEATHER}
SCHEMA = {"name": "town", "schema": WEATHER["parameters"]}
MATRIX: tuple[tuple[str, str, dict[str, Any] | None, int], ...] = (
    ("GET", "/v1/models", None, 200),
    ("OPTIONS", CHAT, None, 200),
    ("POST", f"/{CHAT}", body(), 200),
    ("GET", "/v1/nothing", None, 404),
    ("POST", CHAT, body(stop=["a"]), 200),
    ("POST", CHAT, body(seed=3), 200),
    ("POST", CHAT, body(n=2, max_tokens=20), 200),
    ("POST", CHAT, body(logprobs=True, top_logprobs=2), 200),
    ("POST", CHAT, body(stream=True, stream_options={"include_usage": True}), 200),
    ("POST", CHAT, body(stream=False), 200),
    ("POST", CHAT, body(response_format={"type": "json_object"}), 200),
    ("POST", CHAT, body(response_format={"type": "json_schema", "json_schema": SCHEMA}), 200),
    ("POST", CHAT, body(tools=[TOOL], tool_choice="required"), 200),
    ("POST", CHAT, body(tools=[TOOL], stream=True), 200),
    ("POST", "/v1/responses", {"model": MODEL, "input": "Hello", "max_output_tokens": 40}, 200),
    ("POST", "/v1/messages", body(), 200),
    ("POST", "/v1/messages/count_tokens", {"model": MODEL, "messages": MESSAGES}, 200),
    ("POST", "/v1/embeddings", {"model": MODEL, "input": "Hello"}, 400),
    ("POST", CHAT, body(model="nobody"), 404),
    ("POST", CHAT, {"model": MODEL}, 400),
)
"""Method, path, body and the status of the answer."""


async def ask_all(address: str, secret: str) -> list[httpx.Response]:
    """Everything at the same time, and the list of models once more with a wrong key."""
    preflight = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    mine, other = ({"authorization": f"Bearer {key}"} for key in (secret, "wrong"))

    async with httpx.AsyncClient(base_url=address, timeout=120) as client:

        async def ask(method: str, path: str, data: dict[str, Any] | None) -> httpx.Response:
            headers = preflight if method == "OPTIONS" else mine
            url = httpx.URL(address).copy_with(raw_path=path.encode())
            return await client.request(method, url, json=data, headers=headers)

        wrong = client.get("/v1/models", headers=other)
        return await asyncio.gather(*(ask(*one[:3]) for one in MATRIX), wrong)


def test_s14_every_kind_of_request_has_its_row_in_the_servers_window(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with full_pool(tmp_path) as (real, replies):
            real.window.commands[CommandId.SERVER].trigger()
            server = real.window.server_window.dialog
            assert isinstance(server, ServerWindow)
            server.show_page(ServerPages.REQUESTS)
            _, secret = real.services.server.keys.create(KeyPlan(name="editor"))
            work = ask_all(address_of(real), secret)
            asked = asyncio.create_task(asyncio.to_thread(asyncio.run, work))
            real.gate.shut_when(lambda: num_programs(real) > 3)
            real.gate.open()
            await until(lambda: real.gate.is_shut or asked.done())
            await real.settle()
            server.requests.refresh()
            shoot(server, "s14-under-way")
            await real.shoot("s14-pool")
            real.gate.open()
            answers = await asked
            assert [one.status_code for one in answers] == [*(one[3] for one in MATRIX), 401]
            assert all("error" in one.json() for one in answers if one.status_code >= 400)
            log, num_rows = real.services.server.log, sum(one[0] != "OPTIONS" for one in MATRIX) + 1
            await until(lambda: sum(row.is_over for row in log.rows) == num_rows)
            await until(lambda: not any(one.status.is_alive for one in replies))
            server.requests.refresh()
            seen = sorted((row.method, row.path, row.status) for row in log.rows)
            asked_for = [(method, path, status) for method, path, _, status in MATRIX]
            asked_for.append(("GET", "/v1/models", 401))
            assert seen == sorted(one for one in asked_for if one[0] != "OPTIONS")
            assert [row.client for row in log.rows].count("editor") == num_rows - 1
            model = server.requests.model
            for place in range(model.rowCount()):
                row = model.row_at(model.index(place, 0))
                assert row is not None
                words = str(model.index(place, Column.STATE).data())
                assert (head("Failed · {status}") in words) is (row.status >= 400), words
                assert bool(row.error) is (row.status >= 400)
            failed = next(
                place
                for place in range(model.rowCount())
                if head("Failed · {status}") in str(model.index(place, Column.STATE).data())
            )
            server.requests.table.setCurrentIndex(model.index(failed, 0))
            assert not server.requests.detail.isHidden()
            shoot(server, "s14-all-ended")

    play(story())
