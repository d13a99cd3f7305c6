"""Every common client waits, with its default timeouts, for requests of its own that are parked for long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from fakes.client_calls import CALLS, whole
from fakes.client_jobs import side_by_side
from fakes.client_programs import ask_program, is_there, skip_without
from fakes.client_rig import Rig

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

PARKED_S = 10.5
PROGRAMS = {"openai_client.cjs": 4, "langchain_openai_client.py": 2, "litellm_client.py": 2}
"""With how many requests each makes, side by side."""

Told = dict[str, Future[list[str]]]


@pytest.fixture(scope="module")
def told(rig: Rig) -> Told:
    """What each client was told; all their requests were parked at once, each after its first token."""
    asks: dict[str, Callable[[str], list[str]]] = {
        name: partial(side_by_side, calls=calls) for name, calls in CALLS.items()
    }
    programs = list(filter(is_there, PROGRAMS))
    asks |= {name: partial(ask_program, name, what="chat") for name in programs}
    count = sum(map(len, CALLS.values())) + sum(PROGRAMS[name] for name in programs)
    with ThreadPoolExecutor(len(asks)) as threads, rig.parking() as parker:
        told = {name: threads.submit(ask, rig.address) for name, ask in asks.items()}
        for each in told.values():
            each.add_done_callback(lambda _: parker.give_up())  # too early: it has failed
        parker.wait_for(count)
        threading.Event().wait(PARKED_S)
        states = parker.states()
    if not any(each.exception() for each in told.values()):
        assert states == ["parked"] * count
    return told


@pytest.fixture(scope="module")
def alone(rig: Rig, told: Told) -> str:
    """The same reply to one that was never parked."""
    assert told
    return whole(rig.address)


@pytest.mark.parametrize("name", CALLS)
def test_a_package_waits_for_its_parked_requests(name: str, told: Told, alone: str) -> None:
    assert told[name].result() == [alone] * len(CALLS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_waits_for_its_parked_requests(name: str, told: Told, alone: str) -> None:
    skip_without(name)
    assert told[name].result() == [alone] * PROGRAMS[name]
