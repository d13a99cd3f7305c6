"""Every common client waits, with its default timeouts, for requests of its own that are parked for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import openai
import pytest

from fakes.client_jobs import ASKED, MAX_TOKENS, MESSAGES, MODEL, side_by_side
from fakes.client_programs import ask_program, is_there, skip_without
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

PARKED_S = 10.5
NUM_REQUESTS = {
    "openai": 3,
    "openai_client.cjs": 3,
    "langchain_openai_client.py": 2,
    "litellm_client.py": 2,
}
"""How many each makes, side by side; those with a dot are programs."""


def whole(address: str) -> str:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
        reply = client.chat.completions.create(**ASKED)
    return reply.choices[0].message.content or ""


def streamed(address: str) -> str:
    with (
        openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client,
        client.chat.completions.stream(**ASKED) as stream,
    ):
        return stream.get_final_completion().choices[0].message.content or ""
