"""How long Ollama's clients have a model stay: as they say, within what the user has set, and never cut off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.api import LoadModel, LoadOptions, UnloadModel
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.http_driver import (
    HELLO,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    assert_error,
    on_a_loop,
    open_client,
)
from studio.server.ollama.fields import ChatRequest
from studio.server.parts import ServerParts
from studio.services.idle_unloader import IdleUnloader
from studio.services.model_demand import ModelDemand
from studio.services.model_library_service import ModelLibraryService


class Rig:
    """A server that loads models on demand, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.now_s, self.is_on = 0.0, True
        self.engine = FakeEngine()
        self.idle = IdleUnloader(
            self.engine, lambda: 30, clock=lambda: self.now_s, is_threaded=False
        )
        for name in ("Tiny", "Other"):
            (folder / f"{name}.gguf").write_bytes(b"GGUF")
        self.load("Tiny", folder)
        library = ModelLibraryService(folder, (), inspect=lambda path, name: TINY_MODEL)
        self.parts = ServerParts(
            make_demand=lambda: ModelDemand(
                library,
                lambda _path: LoadOptions(),
                is_on=lambda: self.is_on,
                usual_model=lambda: "",
                idle=self.idle,
            )
        )

    def load(self, name: str, folder: Path) -> None:
        model = replace(TINY_MODEL, name=name, path=folder / f"{name}.gguf")
        self.engine._snapshot = self.engine.ready_snapshot(model)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with open_client(self.engine, parts=self.parts) as client:
            answer = await client.post(path, json={"stream": False, **body})
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert isinstance(found, dict)
            return found


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.idle.close()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (0, 0), ("0", 0), ("0s", 0), (300, 300), (1.5, 1.5), ("300", 300), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400),
        ("250ms", 0.25), ("1m30s", 90), (-1, None), ("-1", None), ("-5m", None), ("24h", 86400), (None, None),
    ],
)  # fmt: skip
def test_durations_are_read_as_ollama_does(said: object, seconds: float | None) -> None:
    wire = ChatRequest.model_validate({"keep_alive": said, "messages": None})
    assert wire.keep_alive == pytest.approx(seconds)


@pytest.mark.parametrize("said", ["", "5 m", "m", "five", "1d", True, [], {}, "5m3", "1e9"])
@pytest.mark.parametrize("path", [OLLAMA_CHAT, OLLAMA_GENERATE, "/api/embed", "/api/embeddings"])
@on_a_loop
async def test_what_is_no_duration_is_refused_by_name(path: str, said: object) -> None:
    body = {**HELLO, "prompt": "a", "input": "a", "keep_alive": said}
    async with open_client(FakeEngine()) as client:
        words = assert_error(await client.post(path, json=body), 400, "")
    assert "keep_alive" in words
    assert "5m" in words


@pytest.mark.parametrize(
    ("path", "body"), [(OLLAMA_CHAT, HELLO), (OLLAMA_GENERATE, {"prompt": "a"}),
                       ("/api/embed", {"input": "a"}), ("/api/embeddings", {"prompt": "a"})],
)  # fmt: skip
@on_a_loop
async def test_the_model_leaves_so_long_after_a_request(
    rig: Rig, path: str, body: dict[str, Any]
) -> None:
    await rig.post(path, {**body, "keep_alive": "5m"})
    assert rig.idle.left_s() == 300
    await rig.post(path, body)
    assert rig.idle.left_s() == 1800, "nothing said: as the user has it"
    await rig.post(path, {**body, "keep_alive": 0})
    assert rig.engine.commands == []
    assert rig.idle.check()
    assert rig.engine.commands == [UnloadModel(only_if_idle=True)]


@pytest.mark.parametrize("path", [OLLAMA_CHAT, OLLAMA_GENERATE])
@on_a_loop
async def test_nothing_to_answer_and_no_time_to_stay_lets_the_model_go(rig: Rig, path: str) -> None:
    answer = await rig.post(path, {"model": "tiny", "keep_alive": "5m"})
    assert (answer["done_reason"], rig.idle.left_s()) == ("load", 300)
    answer = await rig.post(path, {"model": "tiny", "keep_alive": 0})
    assert (answer["done"], answer["done_reason"]) == (True, "unload")
    assert rig.idle.check()


@on_a_loop
async def test_a_model_that_is_not_loaded_is_not_loaded_to_be_let_go(rig: Rig) -> None:
    answer = await rig.post(OLLAMA_GENERATE, {"model": "other", "keep_alive": 0})
    assert (answer["model"], answer["done_reason"]) == ("Other", "unload")
    assert not any(isinstance(each, LoadModel) for each in rig.engine.commands)
    assert not rig.idle.check(), "and the one that is there stays"
    async with open_client(rig.engine, parts=rig.parts) as client:
        unknown = await client.post(OLLAMA_GENERATE, json={"model": "nope", "keep_alive": 0})
    assert_error(unknown, 404, "model_not_found")


@on_a_loop
async def test_where_nothing_would_bring_a_model_back_it_stays(rig: Rig) -> None:
    rig.is_on = False
    for body in ({"keep_alive": 0}, {"keep_alive": 0, "prompt": "a"}):
        answer = await rig.post(OLLAMA_GENERATE, body)
        assert answer["done_reason"] in ("load", "stop")
        assert not rig.idle.check()
    rig.is_on = True
    rig.engine._snapshot = FakeEngine()._snapshot  # of a file elsewhere
    answer = await rig.post(OLLAMA_GENERATE, {"keep_alive": 0})
    assert answer["done_reason"] == "load"
    assert not rig.idle.check()


@on_a_loop
async def test_ps_says_when_the_model_will_leave(rig: Rig) -> None:
    await rig.post(OLLAMA_GENERATE, {"prompt": "a", "keep_alive": "5m"})
    async with open_client(rig.engine, parts=rig.parts) as client:
        (entry,) = (await client.get("/api/ps")).json()["models"]
    expires = datetime.fromisoformat(entry["expires_at"])
    assert 0 < (expires - datetime.now(UTC)).total_seconds() <= 300
    async with open_client(FakeEngine()) as client:
        (entry,) = (await client.get("/api/ps")).json()["models"]
    assert entry["expires_at"].startswith("9999")
