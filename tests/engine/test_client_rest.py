"""A client that rests: text wakes its loop no more than it must, and each request still hears its own, in order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import Any, cast

import pytest

from engine.api import RequestEvent, Started, TokenDelta, TokenLogprob
from engine.client import EngineClient
from fakes.builders import make_request
from fakes.fake_engine import FakeEngine

REST_S = 0.03


class StillLoop:
    """What a client asks of its loop, done when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.later: list[tuple[float, Callable[[], object]]] = []

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: object) -> None:
        self.soon.append(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> None:
        self.later.append((delay, lambda: callback(*args)))

    def run_soon(self) -> None:
        calls, self.soon = self.soon, []
        for call in calls:
            call()

    def end_rest(self) -> None:
        ((delay, call),) = self.later
        assert delay == REST_S
        self.later.clear()
        call()


class Rig:
    """A scripted engine, a client with two requests, and what each of them has heard."""

    def __init__(self, *, rest_s: float = REST_S) -> None:
        self.engine, self.loop = FakeEngine(auto=False), StillLoop()
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.client = EngineClient(self.engine, loop, rest_s=rest_s)
        self._heard: dict[str, list[RequestEvent]] = {"a": [], "b": []}
        self._open = ExitStack()
        for name, heard in self._heard.items():
            request = make_request(request_id=name)
            self._open.enter_context(self.client.hearing(request, heard.append))

    def say(self, name: str, text: str) -> None:
        self.engine.emit(delta(name, text))

    def heard(self, name: str) -> list[RequestEvent]:
        heard = self._heard[name].copy()
        self._heard[name].clear()
        return heard

    def texts(self, name: str) -> list[str]:
        return [event.text for event in self.heard(name) if isinstance(event, TokenDelta)]


def delta(name: str, text: str, **more: Any) -> TokenDelta:
    return TokenDelta(request_id=name, text=text, token_ids=(len(text),), **more)


def started(name: str) -> Started:
    return Started(request_id=name, prompt_tokens=1, cached_tokens=0, queued_s=0.0)


def test_without_a_rest_each_step_wakes_the_loop_and_comes_as_it_is() -> None:
    rig = Rig(rest_s=0.0)
    for text in ("one", "two"):
        rig.say("a", text)
    rig.loop.run_soon()
    assert (rig.texts("a"), rig.loop.later) == (["one", "two"], [])


def test_the_first_text_is_heard_at_once_and_what_follows_after_the_rest_all_together() -> None:
    rig = Rig()
    rig.say("a", "one")
    rig.loop.run_soon()
    assert rig.texts("a") == ["one"]
    for text in (" two", " three", " four"):
        rig.say("a", text)
    rig.say("b", "other")
    assert rig.loop.soon == []
    rig.loop.end_rest()
    assert rig.heard("a") == [
        TokenDelta(request_id="a", text=" two three four", token_ids=(4, 6, 5))
    ]
    assert rig.texts("b") == ["other"]
    assert len(rig.loop.later) == 1, "it rests again"


def test_after_a_rest_in_which_nothing_came_the_next_text_is_heard_at_once() -> None:
    rig = Rig()
    rig.say("a", "one")
    rig.loop.run_soon()
    rig.loop.end_rest()
    assert rig.loop.later == []
    rig.say("a", "two")
    rig.loop.run_soon()
    assert rig.texts("a") == ["one", "two"]


def test_whatever_is_no_text_ends_the_rest_with_all_that_came_before_it_in_order() -> None:
    rig = Rig()
    rig.say("a", "one")
    rig.loop.run_soon()
    rig.heard("a")
    rig.say("a", "two")
    news = started("a")
    rig.engine.emit(delta("a", "three"), news)
    rig.say("b", "other")
    rig.loop.run_soon()
    assert rig.heard("a") == [
        TokenDelta(request_id="a", text="twothree", token_ids=(3, 5)),
        news,
    ]
    assert rig.texts("b") == ["other"]
    assert len(rig.loop.later) == 1, "one rest is enough"


def test_text_is_not_joined_over_what_came_between_nor_with_thoughts() -> None:
    rig = Rig()
    rig.loop.run_soon()
    between = started("b")
    events = [
        delta("a", "one"),
        delta("a", "", reasoning="hm"),
        delta("a", "two"),
        between,
        delta("a", "three"),
    ]
    rig.engine.emit(*events)
    rig.loop.run_soon()
    assert rig.heard("a") == [event for event in events if event is not between]


def test_joined_text_keeps_its_probabilities() -> None:
    rig = Rig()
    chances = [
        TokenLogprob(token_id=number, text="x", token_bytes=b"x", logprob=-1.0)
        for number in range(2)
    ]
    rig.engine.emit(*(delta("a", "x", logprobs=(one,)) for one in chances))
    rig.loop.run_soon()
    (joined,) = rig.heard("a")
    assert isinstance(joined, TokenDelta)
    assert joined.logprobs == tuple(chances)


@pytest.mark.parametrize("rest_s", [0.0, REST_S])
def test_a_request_hears_nothing_of_others_and_a_closed_client_nothing_at_all(
    rest_s: float,
) -> None:
    rig = Rig(rest_s=rest_s)
    rig.say("a", "one")
    rig.client.close()
    rig.say("a", "two")
    rig.loop.run_soon()
    assert (rig.texts("a"), rig.texts("b")) == (["one"], [])


STEPS = (EngineClient._on_events, EngineClient._wake, EngineClient._end_rest, EngineClient._fan_out)
CODES = frozenset(step.__code__ for step in STEPS)


def interrupted(
    work: Callable[[], object], meanwhile: Callable[[], object], after_lines: int
) -> bool:
    """Do one thing as if another thread had its turn after so many lines of it; False when it has fewer lines."""
    lines = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        if frame.f_code not in CODES:
            return None
        if event == "line":
            lines += 1
            if lines == after_lines + 1:
                meanwhile()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines > after_lines


def resting(*unheard: str) -> Rig:
    rig = Rig()
    rig.say("a", "one")
    rig.loop.run_soon()
    for text in unheard:
        rig.say("a", text)
    return rig


def all_that_is_heard(rig: Rig) -> str:
    """Once the loop has done all that it was asked to do and every rest has ended."""
    while rig.loop.soon or rig.loop.later:
        rig.loop.run_soon()
        if rig.loop.later:
            rig.loop.end_rest()
    return "".join(rig.texts("a"))


def at_every_moment(
    make: Callable[[], Rig], work: Callable[[Rig], object], meanwhile: Callable[[Rig], object]
) -> Iterator[Rig]:
    """A rig for each moment of the work at which the other thing was done."""
    moment = 0
    while interrupted(partial(work, rig := make()), partial(meanwhile, rig), moment):
        yield rig
        moment += 1
    assert moment > 1


def say_last(rig: Rig) -> None:
    rig.say("a", " last")


@pytest.mark.parametrize("unheard", [(), (" two",)])
def test_no_text_is_lost_whatever_the_threads_do_at_the_end_of_a_rest(
    unheard: tuple[str, ...],
) -> None:
    make, end = partial(resting, *unheard), lambda rig: rig.loop.end_rest()
    for work, meanwhile in ((say_last, end), (end, say_last)):
        for moment, rig in enumerate(at_every_moment(make, work, meanwhile)):
            assert all_that_is_heard(rig) == "".join(("one", *unheard, " last")), moment


def test_no_text_is_lost_whatever_the_threads_do_during_a_wake_up() -> None:
    def make() -> Rig:
        rig = Rig()
        rig.say("a", "one")
        return rig

    for rig in at_every_moment(make, lambda rig: rig.loop.run_soon(), say_last):
        assert all_that_is_heard(rig) == "one last"
