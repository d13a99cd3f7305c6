"""A model that a request names is loaded if the library has it, with its own settings, and disturbs nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import EngineState, LoadModel, LoadOptions, ModelChanged, ModelInfo
from engine.client import EngineClient
from engine.errors import CorruptModel, ModelNotFound, ModelUnavailable
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.http_driver import CHAT, HELLO, assert_error, on_a_loop, open_client
from studio.server.parts import ServerParts
from studio.services.model_demand import ModelDemand
from studio.services.model_library_service import ModelLibraryService

OPTIONS = LoadOptions(pool_tokens=4096)


def inspect(path: Path, name: str) -> ModelInfo:
    return replace(TINY_MODEL, path=path, name=name)


class LoadingEngine(FakeEngine):
    """Answers loads as told: by being ready, busy or broken."""

    def __init__(self, *, ready: bool = True) -> None:
        super().__init__(ready=ready)
        self.is_busy = False
        self.error: CorruptModel | None = None

    def control(self, command: object) -> None:
        self.commands.append(command)
        if not isinstance(command, LoadModel):
            return
        if self.is_busy:
            self.emit(ModelChanged(state=EngineState.READY, model=self.snapshot().model))
        elif self.error is not None:
            self.emit(ModelChanged(state=EngineState.FAILED, model=None, error=self.error))
        else:
            model = inspect(command.path, command.name)
            self.emit(ModelChanged(state=EngineState.LOADING, model=None))
            self._snapshot = self.ready_snapshot(model)
            self.emit(ModelChanged(state=EngineState.READY, model=model, progress=1.0))


@pytest.fixture
def library(tmp_path: Path) -> ModelLibraryService:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("One", "Two"):
        (folder / f"{name}.gguf").write_bytes(b"GGUF")
    return ModelLibraryService(folder, (), inspect=inspect)


def parts_of(library: ModelLibraryService, *, is_on: bool = True, usual: str = "") -> ServerParts:
    def make() -> ModelDemand:
        return ModelDemand(
            library, lambda _path: OPTIONS, is_on=lambda: is_on, usual_model=lambda: usual
        )

    return ServerParts(make_demand=make)


@contextmanager
def client_of(engine: FakeEngine) -> Iterator[EngineClient]:
    client = EngineClient(engine, asyncio.get_running_loop())
    yield client
    client.close()


@pytest.mark.parametrize("ready", [True, False])
@on_a_loop
async def test_a_named_model_is_loaded_with_its_own_settings(
    library: ModelLibraryService, *, ready: bool
) -> None:
    engine = LoadingEngine(ready=ready)
    async with open_client(engine, parts=parts_of(library)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": "two"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["model"] == "Two"
        again = await client.post(CHAT, json={**HELLO, "model": "Two.gguf"})
        assert again.status_code == 200
    path = library.folder / "Two.gguf"
    assert engine.commands == [LoadModel(path=path, name="Two", options=OPTIONS, only_if_idle=True)]


@on_a_loop
async def test_a_model_in_use_is_never_taken_away(library: ModelLibraryService) -> None:
    engine = LoadingEngine()
    engine.is_busy = True
    async with open_client(engine, parts=parts_of(library)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": "Two"})
        message = assert_error(answer, 503, "model_unavailable")
        assert "'tiny' answers" in message or "tiny answers other requests" in message
        assert int(answer.headers["retry-after"]) >= 1
        assert (await client.post(CHAT, json=HELLO)).status_code == 200


@pytest.mark.parametrize("name", ["default", "Local-Model"])
@on_a_loop
async def test_a_stand_in_for_a_name_means_the_loaded_model(
    library: ModelLibraryService, name: str
) -> None:
    engine = LoadingEngine()
    async with open_client(engine, parts=parts_of(library)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": name})
    assert answer.status_code == 200
    assert answer.json()["model"] == "tiny"
    assert engine.commands == []


@pytest.mark.parametrize("name", ["three", "/etc/passwd", "../One.gguf"])
@on_a_loop
async def test_only_what_the_library_has_is_loaded(library: ModelLibraryService, name: str) -> None:
    engine = LoadingEngine()
    async with open_client(engine, parts=parts_of(library)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": name})
    assert_error(answer, 404, "model_not_found")
    assert engine.commands == []


@on_a_loop
async def test_without_a_name_the_usual_model_is_meant(library: ModelLibraryService) -> None:
    engine = LoadingEngine(ready=False)
    async with open_client(engine, parts=parts_of(library, usual="one")) as client:
        assert (await client.post(CHAT, json=HELLO)).json()["model"] == "One"
    engine = LoadingEngine(ready=False)
    async with open_client(engine, parts=parts_of(library)) as client:
        assert_error(await client.post(CHAT, json=HELLO), 503, "model_unavailable")


@on_a_loop
async def test_a_model_that_cannot_be_loaded_says_why(library: ModelLibraryService) -> None:
    engine = LoadingEngine(ready=False)
    engine.error = CorruptModel("tensor count is 0")
    async with open_client(engine, parts=parts_of(library)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": "one"})
    assert "tensor count" in assert_error(answer, 503, "model_corrupt")


@on_a_loop
async def test_switched_off_only_what_is_loaded_is_served(library: ModelLibraryService) -> None:
    engine = LoadingEngine()
    async with open_client(engine, parts=parts_of(library, is_on=False)) as client:
        answer = await client.post(CHAT, json={**HELLO, "model": "two"})
        models = (await client.get("/v1/models")).json()["data"]
    assert_error(answer, 404, "model_not_found")
    assert [model["id"] for model in models] == ["tiny"]
    assert engine.commands == []


@on_a_loop
async def test_the_list_has_what_can_be_loaded_too(library: ModelLibraryService) -> None:
    async with open_client(LoadingEngine(), parts=parts_of(library)) as client:
        models = (await client.get("/v1/models")).json()["data"]
        one = await client.get("/v1/models/one")
    assert [model["id"] for model in models] == ["tiny", "One", "Two"]
    assert all(isinstance(model["created"], int) for model in models)
    assert one.json()["id"] == "One"


@on_a_loop
async def test_ollamas_list_and_show_have_what_can_be_loaded_too(
    library: ModelLibraryService,
) -> None:
    async with open_client(FakeEngine(), parts=parts_of(library)) as client:
        models = (await client.get("/api/tags")).json()["models"]
        shown = await client.post("/api/show", json={"model": "two:latest"})
        unknown = await client.post("/api/show", json={"model": "three"})
        other = await client.get("/v1/models/three")
        off = await client.post("/api/show", json={"model": ""})
    assert [model["name"] for model in models] == ["tiny", "One", "Two"]
    assert [model["size"] for model in models] == [4000, 4, 4]
    assert models[2]["details"]["family"] == "llama"
    assert "Two.gguf" in shown.json()["modelfile"]
    message = assert_error(unknown, 404, "model_not_found")
    assert message == assert_error(other, 404, "model_not_found")
    assert message == "there is no model 'three' in the library; it has One, Two"
    assert "tiny.gguf" in off.json()["modelfile"], "no name means the loaded one"


@on_a_loop
async def test_files_that_are_not_sound_are_listed_without_facts_and_read_once(
    tmp_path: Path,
) -> None:
    read: list[str] = []

    def refuse(path: Path, name: str) -> ModelInfo:
        read.append(name)
        raise CorruptModel("ends too early")

    (tmp_path / "Bad.gguf").write_bytes(b"GGUF")
    library = ModelLibraryService(tmp_path, (), inspect=refuse)
    async with open_client(FakeEngine(ready=False), parts=parts_of(library)) as client:
        for _ in range(2):
            (model,) = (await client.get("/api/tags")).json()["models"]
            assert model["details"]["family"] == ""
        assert (await client.post("/api/show", json={"model": "Bad"})).status_code == 503
    assert read == ["Bad"]


@on_a_loop
async def test_somebody_elses_load_is_waited_for(library: ModelLibraryService) -> None:
    engine = LoadingEngine(ready=False)
    loading = replace(engine.snapshot(), state=EngineState.LOADING)
    engine._snapshot = loading
    demand = parts_of(library).make_demand
    assert demand is not None
    with client_of(engine) as client:
        work = asyncio.create_task(demand().bring(client, "one", ModelNotFound("no")))
        while not client._model_listeners:  # noqa: ASYNC110 - nothing tells of a listener
            await asyncio.sleep(0)
        assert engine.commands == []
        model = inspect(library.folder / "One.gguf", "One")
        engine._snapshot = engine.ready_snapshot(model)
        engine.emit(ModelChanged(state=EngineState.READY, model=model))
        await work
    assert engine.commands == []


@on_a_loop
async def test_a_load_without_end_is_given_up_on(library: ModelLibraryService) -> None:
    engine = FakeEngine(auto=False, ready=False)
    demand = ModelDemand(
        library,
        lambda _path: OPTIONS,
        is_on=lambda: True,
        usual_model=lambda: "",
        longest_load_s=0.01,
    )
    with (
        client_of(engine) as client,
        pytest.raises(ModelUnavailable, match="One has not been ready within") as caught,
    ):
        await demand.bring(client, "one", ModelNotFound("no"))
    assert caught.value.retry_after_s is not None
