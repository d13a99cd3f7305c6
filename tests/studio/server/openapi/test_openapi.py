"""The description is whole and true: every route, every field, and real requests and answers are as it says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest
from fastapi.openapi.utils import get_openapi

from engine.api import EngineSnapshot, EngineState
from engine.errors import DeviceFailure
from engine.runs import Origin, Priority, Run, RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import POSTS, REPLIES, make_app, on_a_loop, open_client
from studio.models.server_settings import ServerSettings
from studio.server.openapi.bodies import body_schemas, ref_of
from studio.server.openapi.document import build_document, plain_path
from studio.server.openapi.entries import OPERATIONS
from studio.server.openapi.field_words import FIELD_WORDS
from studio.server.openapi.page import POLICY, build_page
from studio.server.openapi.request_schemas import READ_FIELDS
from studio.server.openapi.schema_words import fields_of
from studio.server.wire import NOT_SERVED

DOCUMENT = build_document(OPERATIONS, "1")
GETS = sorted(path for method, path in OPERATIONS if method == "GET" and "{" not in path)
RUN = Run(
    request_id="cmpl-1-0",
    origin=Origin.API,
    priority=Priority.NORMAL,
    state=RunState.WRITING,
    prompt_tokens=5,
    held_tokens=9,
    completion_tokens=4,
    is_pinned=False,
    num_parks=0,
    num_recomputes=0,
    waited_s=0.1,
)


def validate(value: object, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(
        value
    )


def answer_schema(method: str, path: str, status: int) -> dict[str, Any]:
    """Of the JSON that this status has; fails where the document does not know the status."""
    response = DOCUMENT["paths"][path][method.lower()]["responses"][str(status)]
    return response["content"]["application/json"]["schema"]


@on_a_loop
async def test_every_route_is_described_and_nothing_else() -> None:
    app = make_app(FakeEngine())
    found = get_openapi(title="what the framework sees", version="1", routes=app.routes)["paths"]
    there = {(method.upper(), path) for path, methods in found.items() for method in methods}
    assert there == {(method, plain_path(path)) for method, path in OPERATIONS}


def test_every_schema_is_one() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                for content in response["content"].values():
                    jsonschema.Draft202012Validator.check_schema(content["schema"])
    refs = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(DOCUMENT)))
    assert refs <= {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}


def test_names_are_each_ones_own() -> None:
    ids = [
        each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()
    ]
    assert len(ids) == len(set(ids)) == len(OPERATIONS)
    bodies = {each.body for each in OPERATIONS.values() if each.body is not None}
    assert len({body.__name__ for body in bodies}) == len(bodies)


def test_every_field_says_what_it_takes() -> None:
    silent = {
        f"{name}.{field}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for field, said in schema.get("properties", {}).items()
        if not set(said) - {"default", "description"}
    }
    assert silent == set()


def test_words_are_about_fields_there_are() -> None:
    fields = {f for s in DOCUMENT["components"]["schemas"].values() for f in s["properties"]}
    assert set(FIELD_WORDS) <= fields


def test_required_fields_are_shown_first_and_idle_ones_last() -> None:
    schema = DOCUMENT["components"]["schemas"]["CompletionRequest"]
    names = [name for name, _, _ in fields_of(schema)]
    assert names[0] == "prompt*"
    assert names.index("temperature") < names.index("mirostat")
    assert fields_of(schema)[-1][2] == NOT_SERVED


def test_what_is_said_of_fields_is_about_fields_there_are() -> None:
    for body, fields in READ_FIELDS.items():
        (schema,) = (s for name, s in body_schemas([body]).items() if name == body.__name__)
        assert set(fields) <= set(schema["properties"]), body


@pytest.mark.parametrize("route", [route for route, each in OPERATIONS.items() if each.example])
def test_examples_are_as_their_bodies_and_are_taken(route: tuple[str, str]) -> None:
    operation = OPERATIONS[route]
    assert operation.body is not None
    assert operation.example is not None
    validate(operation.example, {"$ref": ref_of(operation.body)})
    operation.body.model_validate_json(json.dumps(operation.example))


@pytest.mark.parametrize("path", POSTS)
@on_a_loop
async def test_bodies_and_answers_are_as_described(path: str) -> None:
    operation = OPERATIONS["POST", path]
    assert operation.body is not None
    validate(POSTS[path], {"$ref": ref_of(operation.body)})
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json=POSTS[path])
    validate(answer.json(), answer_schema("POST", path, answer.status_code))
    assert answer.status_code == 200


@pytest.mark.parametrize("path", REPLIES)
@on_a_loop
async def test_streams_are_of_the_kind_that_is_described(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={**REPLIES[path], "stream": True})
    media = answer.headers["content-type"].partition(";")[0]
    assert media in DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]
    assert media != "application/json"


@pytest.mark.parametrize("path", GETS)
@on_a_loop
async def test_questions_are_answered_as_described(path: str) -> None:
    engine = FakeEngine()
    engine.publish(RUN)
    async with open_client(engine) as client:
        answer = await client.get(path)
    assert answer.status_code == 200
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
    (media,) = content
    assert answer.headers["content-type"].partition(";")[0] == media
    if media == "application/json":
        validate(answer.json(), content[media]["schema"])


@pytest.mark.parametrize("path", POSTS)
@on_a_loop
async def test_errors_are_as_described(path: str) -> None:
    class Failing(FakeEngine):
        def submit(self, request: Any) -> None:
            super().submit(request)
            self.fail(request.request_id, DeviceFailure("broken"))

    answers = []
    async with open_client(Failing(auto=False)) as client:
        answers.append(await client.post(path, content=b"{"))
        answers.append(await client.post(path, json={**POSTS[path], "model": "gpt-9"}))
        answers.append(await client.post(path, json=POSTS[path], headers={"host": "evil.example"}))
        if path in REPLIES:
            answers.append(await client.post(path, json=POSTS[path]))
    engine = FakeEngine()
    engine._snapshot = EngineSnapshot(state=EngineState.NO_MODEL)
    async with open_client(engine, settings=ServerSettings(api_key="k")) as client:
        answers.append(await client.post(path, json=POSTS[path]))
        answers.append(await client.post(path, json=POSTS[path], headers={"x-api-key": "k"}))
    statuses = [answer.status_code for answer in answers]
    assert statuses == [400, 404, 403, *([500] if path in REPLIES else []), 401, 503]
    for answer in answers:
        validate(answer.json(), answer_schema("POST", path, answer.status_code))


@pytest.mark.parametrize("action", ["park", "resume", "pin", "unpin", "priority"])
@on_a_loop
async def test_steering_is_as_described(action: str) -> None:
    engine = FakeEngine()
    engine.publish(RUN)
    path = f"/v1/runs/{{run_id}}/{action}"
    async with open_client(engine) as client:
        for name in ("cmpl-1-0", "cmpl-1", "nobody"):
            body = {"priority": "normal"}
            answer = await client.post(path.replace("{run_id}", name), json=body)
            validate(answer.json(), answer_schema("POST", path, answer.status_code))


def test_paths_are_as_openapi_has_them() -> None:
    assert plain_path("/v1/models/{name:path}") == "/v1/models/{name}"
    (parameter,) = DOCUMENT["paths"]["/v1/models/{name}"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("name", "path", True)


class Links(HTMLParser):
    """What a page would load or lead to, and the ids it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "src" in given or tag in ("link", "img", "iframe"):
            self.loads.append(tag)
        if tag == "a":
            self.leads.append(given["href"] or "")
        if given.get("id"):
            self.ids.append(given["id"] or "")


def test_the_page_has_every_route_and_loads_nothing() -> None:
    page = build_page(DOCUMENT)
    links = Links(page)
    assert links.loads == []
    assert len(links.ids) == len(set(links.ids))
    assert all(
        lead == "/openapi.json" or lead.removeprefix("#") in links.ids for lead in links.leads
    )
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            assert operation["operationId"] in links.ids
    assert "from openai import OpenAI" in page
    assert "curl http://127.0.0.1:8484/v1/chat/completions" in page


@on_a_loop
async def test_both_are_served_without_a_key_and_the_page_under_a_policy() -> None:
    async with open_client(FakeEngine(), settings=ServerSettings(api_key="k")) as client:
        document, page = await client.get("/openapi.json"), await client.get("/docs")
        foreign = await client.get("/docs", headers={"host": "evil.example"})
    assert document.json()["openapi"] == "3.1.0"
    assert page.headers["content-security-policy"] == POLICY
    assert page.text.startswith("<!doctype html>")
    assert foreign.status_code == 403


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/responses/resp_1", "DELETE, GET"),
        ("/v1/responses/resp_1/input_items", "GET"),
        ("/v1/responses/input_tokens", "POST"),
        ("/v1/models/some/name", "GET"),
        ("/api/delete", "DELETE"),
        ("/docs", "GET"),
    ],
)
@on_a_loop
async def test_a_wrong_method_is_told_all_that_are_right(path: str, methods: str) -> None:
    async with open_client(FakeEngine()) as client:
        wrong, asked = await client.put(path), await client.options(path)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, methods)
    assert (asked.status_code, asked.headers["allow"]) == (204, methods)
