"""How a key's requests are counted against its share: what they ask for, what such replies took, what they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from engine.api import Origin, Request, SamplingParams, Text, TokenDelta, Wanted
from engine.client import EngineClient
from engine.runs import RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import on_a_loop
from fakes.runs import make_run
from studio.models.server_keys import Caller
from studio.server.share_gate import Place, ShareGate

HALF = Caller(key_id="k", name="agent", share_percent=50)
"""1,024 tokens of the fake's pool."""


def ask(request_id: str, max_tokens: int | None = None, wants: Wanted = Wanted.TEXT) -> Request:
    return Request(
        request_id=request_id,
        origin=Origin.API,
        prompt=Text(text="x" * 400),
        sampling=SamplingParams(),
        max_tokens=max_tokens,
        wants=wants,
    )


def make_gate(engine: FakeEngine) -> ShareGate:
    return ShareGate(EngineClient(engine, asyncio.get_running_loop()))


@contextmanager
def places(gate: ShareGate, requests: Sequence[Request]) -> Iterator[list[Place]]:
    """A place for each, asked for in their order."""
    with ExitStack() as stack:
        yield [stack.enter_context(gate.place(HALF, (each,))) for each in requests]


def write(gate: ShareGate, *num_tokens: int) -> None:
    """Replies without a limit, one after another, that took so many tokens."""
    for count in num_tokens:
        with gate.place(HALF, (ask("before"),)) as place:
            assert place.is_in
            for token_id in range(count):
                place.hear(TokenDelta(request_id="before", text="x", token_ids=(token_id,)))


def unlimited(count: int) -> list[Request]:
    return [ask(f"r{index}") for index in range(count)]


def who_is_in(all_places: list[Place]) -> list[bool]:
    return [place.is_in for place in all_places]


@on_a_loop
async def test_the_first_reply_without_a_limit_may_take_the_whole_share() -> None:
    with places(make_gate(FakeEngine()), unlimited(3)) as found:
        assert who_is_in(found) == [True, False, False]


@on_a_loop
async def test_later_ones_count_with_the_longest_that_came_lately() -> None:
    gate = make_gate(FakeEngine())
    write(gate, 200, 50)
    with places(gate, unlimited(5)) as found:  # 100 tokens of prompt and 200 of reply each
        assert who_is_in(found) == [True, True, True, False, False]


@on_a_loop
async def test_what_was_long_ago_counts_no_more() -> None:
    gate = make_gate(FakeEngine())
    write(gate, 2000, *[20] * 8)
    with places(gate, unlimited(5)) as found:
        assert who_is_in(found) == [True] * 5


@on_a_loop
async def test_one_alone_is_let_in_however_much_it_asks_for() -> None:
    gate = make_gate(FakeEngine())
    with places(gate, [ask("r0", 1900), ask("r1", 1)]) as found:
        assert who_is_in(found) == [True, False]


@on_a_loop
async def test_a_reply_that_outgrew_what_it_was_counted_with_keeps_the_next_out() -> None:
    engine = FakeEngine(auto=False)
    gate = make_gate(engine)
    write(gate, 20)
    with places(gate, unlimited(2)) as found:
        assert who_is_in(found) == [True, True]
        runs = [make_run(each.request_id, RunState.WRITING) for each in unlimited(2)]
        engine.publish(*(replace(run, held_tokens=480) for run in runs))
        with places(gate, [ask("late")]) as late:
            assert who_is_in(late) == [False]


@on_a_loop
async def test_no_reply_counts_with_more_than_the_window_has() -> None:
    engine = FakeEngine()
    gate = make_gate(engine)
    engine.publish_window(512)
    with places(gate, [ask("r0", 1 << 20), ask("r1", 1 << 20), ask("r2", 1 << 20)]) as found:
        assert who_is_in(found) == [True, True, False]


@on_a_loop
async def test_an_embedding_has_no_reply() -> None:
    requests = [ask(f"r{index}", wants=Wanted.EMBEDDING) for index in range(5)]
    with places(make_gate(FakeEngine()), requests) as found:
        assert who_is_in(found) == [True] * 5
