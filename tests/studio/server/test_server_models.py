"""Lists of models, in the shape that the client which asks knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from anthropic.types import ModelInfo

from engine.api import LoadOptions
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.http_driver import on_a_loop, open_client
from studio.server.parts import ServerParts
from studio.services.model_demand import ModelDemand
from studio.services.model_library_service import ModelLibraryService

VERSION = {"anthropic-version": "2023-06-01"}


@pytest.fixture
def parts(tmp_path: Path) -> ServerParts:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("One", "Two"):
        (folder / f"{name}.gguf").write_bytes(b"GGUF")

    def make() -> ModelDemand:
        library = ModelLibraryService(folder, (), inspect=lambda path, name: TINY_MODEL)
        return ModelDemand(
            library, lambda _path: LoadOptions(), is_on=lambda: True, usual_model=lambda: ""
        )

    return ServerParts(make_demand=make)


@on_a_loop
async def test_anthropics_clients_get_entries_that_they_can_parse(parts: ServerParts) -> None:
    async with open_client(FakeEngine(), parts=parts) as client:
        listed = (await client.get("/v1/models", headers=VERSION)).json()
        one = (await client.get("/v1/models/tiny", headers=VERSION)).json()
    models = [ModelInfo.model_validate(each, strict=False) for each in listed["data"]]
    assert [each.id for each in models] == ["tiny", "One", "Two"]
    assert one == listed["data"][0]
    assert (models[0].type, models[0].display_name) == ("model", "tiny")
    assert models[0].created_at.timestamp() == TINY_MODEL.created_s
    assert (one["max_input_tokens"], listed["data"][1]["max_input_tokens"]) == (2048, None)


@on_a_loop
async def test_anthropics_clients_hear_of_an_unknown_model_in_their_own_words(
    parts: ServerParts,
) -> None:
    async with open_client(FakeEngine(), parts=parts) as client:
        answer = await client.get("/v1/models/nope", headers=VERSION)
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "not_found_error"
    assert answer.json()["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ("", ["tiny", "One", "Two"], False),
        ("?limit=2", ["tiny", "One"], True),
        ("?limit=2&after_id=One", ["Two"], False),
        ("?limit=1&before_id=Two", ["One"], True),
        ("?after_id=Two", [], False),
    ],
)
@on_a_loop
async def test_models_come_by_pages(
    parts: ServerParts, query: str, ids: list[str], *, has_more: bool
) -> None:
    async with open_client(FakeEngine(), parts=parts) as client:
        page = (await client.get(f"/v1/models{query}", headers=VERSION)).json()
    assert [each["id"] for each in page["data"]] == ids
    assert page["has_more"] is has_more
    assert (page["first_id"], page["last_id"]) == ((ids or [None])[0], (ids or [None])[-1])


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after_id=nope"])
@on_a_loop
async def test_a_page_that_cannot_be_is_refused_by_name(query: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.get(f"/v1/models?{query}", headers=VERSION)
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["error"]["message"]


@on_a_loop
async def test_everybody_else_gets_openais_list(parts: ServerParts) -> None:
    async with open_client(FakeEngine(), parts=parts) as client:
        listed = (await client.get("/v1/models")).json()
        one = (await client.get("/v1/models/Two")).json()
    assert [each["id"] for each in listed["data"]] == ["tiny", "One", "Two"]
    assert one == listed["data"][2]
    assert (one["object"], one["loaded"]) == ("model", False)


@on_a_loop
async def test_lm_studios_clients_see_what_is_loaded(parts: ServerParts) -> None:
    async with open_client(FakeEngine(), parts=parts) as client:
        listed = (await client.get("/api/v0/models")).json()
        one = (await client.get("/api/v0/models/two")).json()
        unknown = await client.get("/api/v0/models/nope")
    assert [(each["id"], each["state"]) for each in listed["data"]] == [
        ("tiny", "loaded"), ("One", "not-loaded"), ("Two", "not-loaded"),
    ]  # fmt: skip
    loaded = listed["data"][0]
    assert (loaded["max_context_length"], loaded["loaded_context_length"]) == (2048, 2048)
    assert (loaded["arch"], loaded["compatibility_type"]) == ("llama", "gguf")
    assert one == listed["data"][2]
    assert "loaded_context_length" not in one
    assert (unknown.status_code, set(unknown.json())) == (404, {"error"})
