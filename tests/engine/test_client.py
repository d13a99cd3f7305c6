"""The engine as a loop sees it: who hears what, who is not woken, and when the engine is told that it was passed on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from engine.api import EngineEvent, Finished, Origin, Request, RequestEvent, Text, TokenDelta
from engine.client import EngineClient
from engine.errors import InvalidRequest
from fakes.fake_engine import FakeEngine
from fakes.on_a_loop import on_a_loop


class _ToldEngine(FakeEngine):
    """Keeps what its one listener returns."""

    def __init__(self) -> None:
        super().__init__(auto=False)
        self.returned: list[threading.Event | None] = []

    def emit(self, *events: EngineEvent) -> None:
        self.returned += [listener(events) for listener in tuple(self._listeners)]


def _ask(request_id: str) -> Request:
    return Request(request_id=request_id, origin=Origin.API, prompt=Text(text="hello"))


def _others(engine: FakeEngine) -> None:
    """A request that is not the client's is alive."""
    engine.submit(_ask("of another"))


async def _turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@on_a_loop
async def test_each_is_handed_its_own_events_until_its_end_and_is_aborted_when_left_before() -> (
    None
):
    engine = _ToldEngine()
    client = EngineClient(engine, asyncio.get_running_loop())
    heard: list[RequestEvent] = []
    with client.hearing(_ask("a"), heard.append), client.hearing(_ask("b"), heard.append):
        engine.say("a", "one")
        engine.finish("a")
        await _turns()
        assert [type(event) for event in heard] == [TokenDelta, Finished]
        with (
            pytest.raises(InvalidRequest, match="'b' is already alive"),
            client.hearing(_ask("b"), heard.append),
        ):
            pass
        assert engine.aborted == []
    assert engine.aborted == ["b"]  # whose end nobody hears any more
    await _turns()
    assert [event.request_id for event in heard] == ["a", "a"]


@on_a_loop
async def test_the_loop_is_woken_only_for_what_somebody_there_listens_to() -> None:
    engine = _ToldEngine()
    loop = asyncio.get_running_loop()
    client = EngineClient(engine, loop, is_quick=True)
    _others(engine)
    engine.say("of another", "text")
    assert engine.returned == [None]
    moves: list[EngineEvent] = []
    stop = client.on_move(moves.append)
    engine.say("of another", "more text")
    engine.finish("of another")
    await _turns()
    assert [type(event) for event in moves] == [Finished]
    assert engine.returned[1] is None
    assert engine.returned[2] is not None
    stop()
    _others(engine)
    engine.finish("of another")
    assert engine.returned[3] is None


@on_a_loop
async def test_the_engine_is_told_once_all_who_were_handed_something_had_their_turn() -> None:
    engine = _ToldEngine()
    client = EngineClient(engine, asyncio.get_running_loop(), is_quick=True)
    was_told: list[bool] = []
    is_in = asyncio.Event()

    async def read(request_id: str) -> None:
        async with client.stream(_ask(request_id)) as events:
            is_in.set()
            async for event in events:
                was_told.append(engine.returned[-1] is not None and engine.returned[-1].is_set())
                if isinstance(event, Finished):
                    return

    readers = [asyncio.create_task(read(name)) for name in ("a", "b")]
    await is_in.wait()
    await _turns()
    engine.emit(*(TokenDelta(request_id=name, text="x", token_ids=(1,)) for name in ("a", "b")))
    told = engine.returned[-1]
    assert told is not None
    assert not told.is_set()
    await _turns()
    assert told.is_set()
    assert was_told == [False, False]
    engine.finish("a")
    engine.finish("b")
    await asyncio.gather(*readers)


def test_a_client_that_promises_nothing_is_not_waited_for_nor_one_whose_loop_has_closed() -> None:
    engine = _ToldEngine()

    async def slow() -> None:
        client = EngineClient(engine, asyncio.get_running_loop())
        with client.hearing(_ask("a"), lambda _event: None):
            engine.say("a", "text")
            await _turns()
        client.close()

    asyncio.run(slow())
    assert engine.returned == [None, None]  # and the end, as the block was left
    loop = asyncio.new_event_loop()
    client = EngineClient(engine, loop, is_quick=True)
    client.on_move(lambda _move: None)
    loop.close()
    _others(engine)
    engine.finish("of another")
    assert engine.returned[-1] is None
