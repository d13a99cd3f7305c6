"""A server's own counts of its steps, read as it tells them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.runs import StepCount
from fakes.fake_engine import FakeEngine
from fakes.http_driver import on_a_loop, open_client
from studio.bench.served_steps import parse_steps, read_steps, steps_between
from studio.models.errors import StudioError

READ = StepCount(
    replies=0, has_prompts=True, steps=3, seconds=0.5, prompt_tokens=700, context_tokens=90
)
WRITTEN = StepCount(
    replies=2, has_prompts=False, steps=40, seconds=1.25, prompt_tokens=0, context_tokens=8000
)


@on_a_loop
async def test_what_a_server_tells_of_its_steps_is_what_the_engine_counted() -> None:
    engine = FakeEngine(auto=False)
    engine._snapshot = replace(engine.snapshot(), steps=(READ, WRITTEN))
    async with open_client(engine) as client:
        answer = await client.get("/metrics")
    assert parse_steps(answer.text) == (READ, WRITTEN)


def test_only_what_came_in_between_counts() -> None:
    later = replace(WRITTEN, steps=50, seconds=1.5, context_tokens=11000)
    found = steps_between((WRITTEN,), (READ, later))
    assert found == (READ, replace(WRITTEN, steps=10, seconds=0.25, context_tokens=3000))


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(StudioError, match="does not tell its steps"):
        read_steps("http://127.0.0.1:1")
