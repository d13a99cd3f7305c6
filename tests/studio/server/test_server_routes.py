"""Every route meets a good request, bad JSON, no key, a wrong key, no model, a failing engine, a wrong method."""

from __future__ import annotations

import httpx
import pytest

from engine.api import EngineSnapshot, EngineState, Request
from engine.errors import ContextLengthExceeded, DeviceFailure, EngineError, ModelUnavailable
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    CHAT,
    HELLO,
    POSTS,
    REPLIES,
    TEXT,
    WatchedEngine,
    assert_error,
    on_a_loop,
    open_client,
)
from studio.models.server_settings import ServerSettings
from studio.server.body import MAX_BODY_BYTES

GETS = (
    "/health", "/v1/models", "/v1/models/tiny", "/v1/runs", "/slots", "/props", "/metrics",
    "/", "/api/version", "/api/tags", "/api/ps",
)  # fmt: skip
KEYED = ServerSettings(api_key="hunter2")


class FailingEngine(FakeEngine):
    """Ends every request with one error, before any text."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(auto=False)
        self._error = error

    def submit(self, request: Request) -> None:
        super().submit(request)
        self.fail(request.request_id, self._error)


async def ask(client: httpx.AsyncClient, method: str, path: str) -> httpx.Response:
    return await client.request(method, path, json=POSTS.get(path))


@pytest.mark.parametrize("path", GETS)
@on_a_loop
async def test_get_routes_answer_get_and_head(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer, head = await client.get(path), await client.head(path)
    assert answer.status_code == head.status_code == 200
    assert answer.content
    assert not head.content


@on_a_loop
async def test_health_tells_the_state_of_the_model() -> None:
    engine = FakeEngine(ready=False)
    async with open_client(engine) as client:
        assert (await client.get("/health")).json() == {"status": "no model"}
        engine._snapshot = EngineSnapshot(state=EngineState.LOADING)
        loading = await client.get("/health")
        error = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
        body = {"status": "loading model", "error": error}
        assert (loading.status_code, loading.json()) == (503, body)
        assert loading.headers["retry-after"] == "2"
        engine._snapshot = FakeEngine()._snapshot
        ready = await client.get("/health")
    assert (ready.status_code, ready.json()) == (200, {"status": "ok"})


@on_a_loop
async def test_models_lists_the_loaded_model() -> None:
    async with open_client(FakeEngine()) as client:
        listed = (await client.get("/v1/models")).json()
    assert listed["object"] == "list"
    assert listed["data"] == [
        {
            "id": "tiny",
            "object": "model",
            "created": 1_700_000_000,
            "owned_by": "layby",
            "max_model_len": 2048,
        }
    ]


@on_a_loop
async def test_models_is_empty_without_a_model_and_one_model_is_then_unavailable() -> None:
    async with open_client(FakeEngine(ready=False)) as client:
        assert (await client.get("/v1/models")).json() == {"object": "list", "data": []}
        assert_error(await client.get("/v1/models/tiny"), 503, "model_unavailable")


@pytest.mark.parametrize("name", ["tiny", "TINY", "tiny.gguf"])
@on_a_loop
async def test_one_model_is_found_by_name_and_by_file(name: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.get(f"/v1/models/{name}")
    assert answer.json()["id"] == "tiny"


@on_a_loop
async def test_chat_answers_whole() -> None:
    async with open_client(FakeEngine()) as client:
        answer = (await client.post(CHAT, json=HELLO)).json()
    assert answer["id"].startswith("chatcmpl-")
    assert (answer["object"], answer["model"]) == ("chat.completion", "tiny")
    assert answer["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello there, friend.", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert answer["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


@on_a_loop
async def test_completions_answer_every_prompt_and_choice_in_order() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = (await client.post(TEXT, json={"prompt": ["a", [1, 2]], "n": 2})).json()
    assert answer["object"] == "text_completion"
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert {choice["text"] for choice in answer["choices"]} == {"Hello there, friend."}
    assert answer["usage"]["prompt_tokens"] == 10
    assert answer["usage"]["completion_tokens"] == 12
    assert len(engine.requests) == 4


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("body", "hint"),
    [(b"{: 1}", "line 1 column 2"), (b"", "empty"), (b"[]", "object"), (b"[" * 100_000, "JSON")],
)
@on_a_loop
async def test_bad_json_is_answered_with_its_place(path: str, body: bytes, hint: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(path, content=body)
    assert hint in assert_error(answer, 400, "invalid_value")
    assert not engine.requests


@pytest.mark.parametrize("path", POSTS)
@on_a_loop
async def test_content_type_does_not_matter(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json=POSTS[path], headers={"content-type": "text/plain"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("is_declared", [True, False])
@on_a_loop
async def test_a_body_over_the_limit_is_refused(path: str, is_declared: bool) -> None:
    async def parts():
        for _ in range(MAX_BODY_BYTES // (1 << 20) + 1):
            yield b" " * (1 << 20)

    async with open_client(FakeEngine()) as client:
        if is_declared:
            headers = {"content-length": str(MAX_BODY_BYTES + 1)}
            answer = await client.post(path, content=b"{}", headers=headers)
        else:
            answer = await client.post(path, content=parts())
    assert_error(answer, 413, "request_too_large")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", path) for path in GETS[1:]] + [("POST", path) for path in POSTS]
)
@on_a_loop
async def test_a_key_is_asked_for_and_compared(method: str, path: str) -> None:
    engine = FakeEngine()
    async with open_client(engine, settings=KEYED) as client:
        missing = await ask(client, method, path)
        assert_error(missing, 401, "invalid_api_key")
        assert missing.headers["www-authenticate"] == "Bearer"
        for wrong in ("hunter", "hunter22", "", "höhö"):
            client.headers = httpx.Headers({"authorization": f"Bearer {wrong}"}, encoding="utf-8")
            assert_error(await ask(client, method, path), 401, "invalid_api_key")
        assert not engine.requests
        client.headers["authorization"] = "bearer hunter2"
        assert (await ask(client, method, path)).status_code == 200
        del client.headers["authorization"]
        client.headers["x-api-key"] = "hunter2"
        assert (await ask(client, method, path)).status_code == 200


@on_a_loop
async def test_health_needs_no_key() -> None:
    async with open_client(FakeEngine(), settings=KEYED) as client:
        assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("path", REPLIES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (
            ContextLengthExceeded("too long", needed_tokens=9, limit_tokens=5),
            400,
            "context_length_exceeded",
        ),
        (ModelUnavailable("unloaded"), 503, "model_unavailable"),
        (DeviceFailure("broken"), 500, "device_failure"),
    ],
)
@on_a_loop
async def test_a_failing_engine_gives_a_proper_status(
    path: str, stream: bool, error: EngineError, status: int, code: str
) -> None:
    async with open_client(FailingEngine(error)) as client:
        answer = await client.post(path, json={**REPLIES[path], "stream": stream})
    assert str(error) in assert_error(answer, status, code)


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("state", "code", "hint"),
    [
        (EngineState.NO_MODEL, "model_unavailable", "no model is loaded"),
        (EngineState.LOADING, "model_unavailable", "still loading"),
        (EngineState.FAILED, "model_unavailable", "could not be loaded"),
        (EngineState.STOPPED, "engine_stopped", "shut down"),
    ],
)
@on_a_loop
async def test_no_model_means_503_and_nothing_is_queued(
    path: str, state: EngineState, code: str, hint: str
) -> None:
    engine = FakeEngine()
    engine._snapshot = EngineSnapshot(state=state)
    async with open_client(engine) as client:
        answer = await client.post(path, json=POSTS[path])
    assert hint in assert_error(answer, 503, code)
    assert ("retry-after" in answer.headers) is (state is EngineState.LOADING)
    assert not engine.requests


@pytest.mark.parametrize("path", POSTS)
@on_a_loop
async def test_the_model_is_the_loaded_one_or_unknown(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        for name in (None, "", "tiny", "Tiny.GGUF", "/models/tiny.gguf"):
            answer = await client.post(path, json={**POSTS[path], "model": name})
            body = answer.json()
            assert isinstance(body, list) or body.get("model", "tiny") == "tiny"
        answer = await client.post(path, json={**POSTS[path], "model": "gpt-9"})
    message = assert_error(answer, 404, "model_not_found")
    assert "'gpt-9'" in message
    assert "'tiny'" in message


@pytest.mark.parametrize("path", REPLIES)
@on_a_loop
async def test_a_request_stopped_from_elsewhere_is_an_error(path: str) -> None:
    class Stopper(FakeEngine):
        def submit(self, request: Request) -> None:
            super().submit(request)
            self.abort(request.request_id)

    async with open_client(Stopper(auto=False)) as client:
        answer = await client.post(path, json=REPLIES[path])
    assert_error(answer, 503, "request_cancelled")


@on_a_loop
async def test_one_failing_choice_ends_the_others() -> None:
    class OneFails(WatchedEngine):
        def submit(self, request: Request) -> None:
            super().submit(request)
            if len(self.requests) == 3:
                self.fail(request.request_id, DeviceFailure("broken"))

    engine = OneFails(auto=False)
    async with open_client(engine) as client:
        answer = await client.post(TEXT, json={"prompt": "a", "n": 3})
    assert_error(answer, 500, "device_failure")
    assert sorted(engine.aborted) == sorted(engine.requests)[:2]


@pytest.mark.parametrize("path", ["//v1//models", "/v1/models/", "//v1/models//"])
@on_a_loop
async def test_doubled_and_trailing_slashes_are_forgiven(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.get(f"http://localhost{path}")
    assert answer.json()["object"] == "list"


@on_a_loop
async def test_unknown_paths_and_wrong_methods_are_errors_in_json() -> None:
    async with open_client(FakeEngine()) as client:
        unknown = await client.get("/v1/nothing")
        assert "/v1/nothing" in assert_error(unknown, 404, "unknown_path")
        wrong = await client.get(CHAT)
        assert_error(wrong, 405, "method_not_allowed")
        assert wrong.headers["allow"] == "POST"
        assert_error(await client.delete("/v1/models"), 405, "method_not_allowed")
        assert_error(await client.get("/redoc"), 404, "unknown_path")


@on_a_loop
async def test_answers_carry_a_request_id() -> None:
    async with open_client(FakeEngine()) as client:
        given = await client.get("/v1/models", headers={"x-request-id": "abc-1"})
        fresh = await client.get("/nowhere")
        unsafe = await client.get("/health", headers={"x-request-id": "a b\t"})
    assert given.headers["x-request-id"] == "abc-1"
    assert fresh.headers["x-request-id"].startswith("req_")
    assert unsafe.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("path", POSTS)
@on_a_loop
async def test_a_bug_is_an_internal_error_without_its_details(path: str) -> None:
    class Broken(FakeEngine):
        def snapshot(self) -> EngineSnapshot:
            raise RuntimeError("secret")

    async with open_client(Broken()) as client:
        answer = await client.post(path, json=POSTS[path], headers={"x-request-id": "abc-1"})
    assert "secret" not in assert_error(answer, 500, "internal_error")
    assert answer.headers["x-request-id"] == "abc-1"


def test_every_request_is_one_log_line_with_its_id(caplog: pytest.LogCaptureFixture) -> None:
    @on_a_loop
    async def ask_once() -> None:
        async with open_client(FakeEngine()) as client:
            await client.get("/v1/models", headers={"x-request-id": "abc-1"})

    with caplog.at_level("INFO", logger="studio.server"):
        ask_once()
    (line,) = [r.getMessage() for r in caplog.records if r.name.startswith("studio.server")]
    assert line.startswith("GET /v1/models -> 200")
    assert "abc-1" in line
