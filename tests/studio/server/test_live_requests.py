"""Work ends with its client or with the server, and has ended when the caller hears of it."""

from __future__ import annotations

import asyncio

import pytest

from fakes.http_driver import on_a_loop
from studio.server.errors import ApiError, ClientLeft
from studio.server.live_requests import LiveRequests


class Job:
    """Work that lasts until it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.has_ended = False

    async def run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.has_ended = True


async def stay() -> dict[str, str]:
    await asyncio.Event().wait()
    raise AssertionError


@on_a_loop
async def test_results_and_errors_pass_through() -> None:
    async def fail() -> None:
        raise ValueError("no")

    live = LiveRequests()
    assert await live.run(asyncio.sleep(0, "done"), receive=stay) == "done"
    with pytest.raises(ValueError, match="no"):
        await live.run(fail(), receive=None)


@on_a_loop
async def test_the_client_leaving_ends_the_work() -> None:
    job = Job()

    async def leave() -> dict[str, str]:
        await job.began.wait()
        return {"type": "http.disconnect"}

    with pytest.raises(ClientLeft):
        await LiveRequests().run(job.run(), receive=leave)
    assert job.has_ended


@on_a_loop
async def test_stopping_ends_what_runs_and_what_comes_later() -> None:
    live, job, late = LiveRequests(), Job(), Job()
    running = asyncio.create_task(live.run(job.run(), receive=stay))
    await job.began.wait()
    live.stop_all()
    with pytest.raises(ApiError, match="stopping"):
        await running
    assert job.has_ended
    with pytest.raises(ApiError, match="stopping"):
        await live.run(late.run(), receive=stay)
    assert not late.began.is_set()


@on_a_loop
async def test_the_caller_being_cancelled_ends_the_work() -> None:
    live, job = LiveRequests(), Job()
    running = asyncio.create_task(live.run(job.run(), receive=stay))
    await job.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert job.has_ended
