"""S4 in the real window: three chats fill the pool, two programs ask the local server; all end, all are in one list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import openai

from engine.api import Origin, SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.models.request_log import RequestState
from studio.views.actions import CommandId

Play = Callable[[Coroutine[Any, Any, None]], None]
SETTINGS = ChatSettings(
    sampling=SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS), max_tokens=200
)
ASK: Any = {
    "model": "tiny-llama-F32",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 60,
}


def stream(address: str) -> tuple[str | None, int]:
    """How a streamed reply ended, and its tokens."""
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(
                **ASK, stream=True, stream_options={"include_usage": True}
            )
        )
    ends = [one.choices[0].finish_reason for one in chunks if one.choices]
    usage = chunks[-1].usage
    assert usage is not None
    return ends[-1], usage.completion_tokens


def ask_whole(address: str) -> tuple[str | None, int]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        answer = client.chat.completions.create(**ASK)
    assert answer.usage is not None
    return answer.choices[0].finish_reason, answer.usage.completion_tokens


def programs(real: RealWindow) -> list[str]:
    runs = real.services.runs.snapshot().runs
    return [run.request_id for run in runs if run.origin is Origin.API]


def test_s4_programs_and_chats_share_the_pool_and_stand_in_one_list(
    play: Play, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "model")

    async def story() -> None:
        flags = {"engine__ctx_size": 512, "engine__parallel": 5, "server__port": 0}
        async with open_real(tmp_path / "home", **flags) as real:
            assert await real.services.models.load(str(model))
            server = real.services.server
            await server.start()
            assert server.address is not None
            real.window.commands[CommandId.POOL].trigger()
            replies = await real.send_at_once(SETTINGS, ("Lisbon", "Children", "Recipes"))
            await real.run_until(3, 60)
            real.gate.shut_when(lambda: len(programs(real)) == 2)
            asked = [
                asyncio.create_task(asyncio.to_thread(ask, server.address))
                for ask in (stream, ask_whole)
            ]
            await until(lambda: len(server.requests_under_way()) == 2)
            real.gate.open()
            await until(lambda: real.gate.is_shut or all(one.done() for one in asked))
            await real.settle()
            rows = real.window.pool_panel.rows
            assert {*programs(real)} <= rows.keys()
            await real.shoot("s4-programs-beside-chats")
            real.gate.open()
            assert [(await one)[1] <= 60 for one in asked] == [True, True]
            assert {(await one)[0] for one in asked} <= {"stop", "length"}
            await until(lambda: not any(one.status.is_alive for one in replies))
            assert {one.status for one in replies} == {MessageStatus.LENGTH}
            assert any(one.stats.parked_s > 0 for one in replies)
            await until(lambda: [row.state for row in server.log.rows] == [RequestState.DONE] * 2)
            await real.shoot("s4-all-ended")

    play(story())
