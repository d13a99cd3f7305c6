"""Replies of the real services that begin at one moment for the engine, whatever turns the threads take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.api import SamplingParams
from fakes.chat_rig import until
from fakes.gate import Gate
from fakes.tiny_files import EOS_ID, UNKNOWN_ID
from studio.models.chat import Message, reply_request_id
from studio.models.chat_settings import ChatSettings
from studio.services.run_service import Steer
from studio.views.ports import WindowServices

NEVER_ENDS = tuple((token_id, float("-inf")) for token_id in (EOS_ID, UNKNOWN_ID))
"""A logit bias with which a reply has exactly as many tokens as it may; of the tiny models and the starter model."""


async def ask(services: WindowServices, title: str, *, tokens: int) -> Message:
    """A new chat with a reply of exactly so many tokens."""
    chat = await services.chats.new_chat()
    sampling = SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS)
    chat.settings = ChatSettings(sampling=sampling, max_tokens=tokens)
    assert await services.chats.send(chat, title)
    return chat.messages[-1]


async def shut(gate: Gate) -> None:
    gate.shut()
    await until(lambda: gate.is_shut)


async def start_at_once(
    services: WindowServices, gate: Gate, titles: tuple[str, ...], *, tokens: int
) -> list[Message]:
    """Ask for all; the gate is shut, and with the next `open` all begin in the same step."""
    await shut(gate)
    replies = [await ask(services, title, tokens=tokens) for title in titles]
    await begin_at_once(services, gate, replies)
    return replies


async def begin_at_once(services: WindowServices, gate: Gate, replies: Sequence[Message]) -> None:
    """Have all that were asked while the gate was shut begin in the same step, with the next `open`."""
    runs = services.runs
    await asyncio.sleep(0)  # the last one's task has yet to begin
    ids = [reply_request_id(reply) for reply in replies]
    for request_id in ids:
        runs.steer(request_id, Steer.PARK)
    gate.open()
    await until(
        lambda: {one.request_id for one in runs.snapshot().runs if one.wait}.issuperset(ids)
    )
    await shut(gate)
    for request_id in reversed(ids):
        runs.steer(request_id, Steer.GO_FIRST)
