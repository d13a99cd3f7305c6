"""A real server on the starter model in the test's own process, where requests are parked at a moment a test knows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from engine.api import EngineEvent, EnginePort, LoadModel, LoadOptions, TokenDelta
from engine.factory import create_engine
from fakes.listening import TIMEOUT_S, Ear
from fakes.patience import wait_for
from studio.models.server_settings import ServerSettings
from studio.server.sse import StreamTimings
from studio.server.thread import ServerThread

MODEL = "smollm2-135m"
LIVELY = StreamTimings(parked_keepalive_s=0.1)
"""So that clients see in seconds every sign of life that a stream has."""


class Rig:
    """The engine and the address of its server."""

    def __init__(self, engine: EnginePort, address: str) -> None:
        self.engine = engine
        self.address = address

    @contextmanager
    def parking(self) -> Iterator[Parker]:
        """Inside, every request is parked as soon as its first token has been told."""
        parker = Parker(self.address)
        stop = self.engine.subscribe(parker.hear)
        try:
            yield parker
        finally:
            stop()
            parker.resume()


class Parker:
    """Parks requests by hand, each once, and brings them back when told to."""

    def __init__(self, address: str) -> None:
        self._runs = f"{address}/v1/runs"
        self._ids: list[str] = []
        self._has_given_up = False
        self._news = threading.Condition()

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        """On the engine's thread, which goes on to its next step only when the command is there."""
        for event in events:
            if isinstance(event, TokenDelta) and event.request_id not in self._ids:
                httpx.post(f"{self._runs}/{event.request_id}/park").raise_for_status()
                with self._news:
                    self._ids.append(event.request_id)
                    self._news.notify_all()

    def give_up(self) -> None:
        """Wait no longer: a client has ended without having been brought back."""
        with self._news:
            self._has_given_up = True
            self._news.notify_all()

    def wait_for(self, count: int) -> None:
        """Until so many requests have been told to wait."""
        with self._news:
            wait_for(self._news, lambda: self._has_given_up or len(self._ids) >= count)

    def states(self) -> list[str]:
        """What became of them."""
        runs = {run["id"]: run["state"] for run in httpx.get(self._runs).json()["data"]}
        return [runs.get(request_id, "ended") for request_id in self._ids]

    def resume(self) -> None:
        for request_id in self._ids:
            httpx.post(f"{self._runs}/{request_id}/resume")


@contextmanager
def open_rig(model: Path) -> Iterator[Rig]:
    """Load the model, serve it, and end both."""
    engine = create_engine()
    server = ServerThread(engine, ServerSettings(port=0), timings=LIVELY)
    ear = Ear(engine)
    try:
        server.start()
        options = LoadOptions(pool_tokens=8192, parallel=4)
        engine.control(LoadModel(path=model, name=MODEL, options=options))
        ear.wait_ready()
        ear.close()
        _wake_workers(server.url)
        yield Rig(engine, server.url)
    finally:
        server.stop()
        engine.shutdown()


def _wake_workers(address: str) -> None:
    """Threads that the engine starts when it first needs them are the rig's, not of the test that needs them first."""
    body = {"prompt": "1", "max_tokens": 1, "grammar": 'root ::= "1"'}
    httpx.post(f"{address}/v1/completions", json=body, timeout=TIMEOUT_S).raise_for_status()
