"""/v1/runs lists every request in flight and steers it by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.api import Priority
from engine.runs import (
    ParkNow,
    ParkUsage,
    Pin,
    ResumeNext,
    Run,
    RunState,
    SetPriority,
    WaitKind,
    WaitReason,
)
from fakes.fake_engine import FakeEngine
from fakes.http_driver import assert_error, on_a_loop, open_client
from fakes.runs import make_run
from studio.models.server_settings import ServerSettings

WAIT = WaitReason(kind=WaitKind.NO_ROOM, place=1, pages_needed=4, pages_spare=1)


def an_engine(*runs: Run) -> FakeEngine:
    engine = FakeEngine(auto=False)
    engine.publish(*runs, parks=ParkUsage(budget_bytes=1 << 30))
    return engine


@on_a_loop
async def test_runs_of_the_window_and_of_programs_are_listed_with_all_their_facts() -> None:
    parked = replace(
        make_run("chat-1-2", RunState.PARKED, wait=WAIT, expected_wait_s=(4.04, 20.0)),
        priority=Priority.INTERACTIVE,
        num_parks=2,
        num_recomputes=1,
        waited_s=1.23456,
    )
    async with open_client(an_engine(parked, make_run("r1"))) as client:
        listed = (await client.get("/v1/runs")).json()
        one = (await client.get("/v1/runs/chat-1-2")).json()
    assert listed["object"] == "list"
    assert [run["id"] for run in listed["data"]] == ["chat-1-2", "r1"]
    assert listed["data"][0] == one
    assert one == {
        "id": "chat-1-2",
        "object": "run",
        "origin": "gui",
        "priority": "interactive",
        "state": "parked",
        "state_in_words": "Parked",
        "prompt_tokens": 300,
        "completion_tokens": 340,
        "held_tokens": 640,
        "pinned": False,
        "parks": 2,
        "recomputes": 1,
        "waited_s": 1.235,
        "place": 1,
        "reason": "no_room",
        "reason_in_words": "Waiting for room: it needs 4 pages and 1 are spare",
        "ahead": [],
        "expected_wait_s": [4.0, 20.0],
    }
    running = listed["data"][1]
    assert set(running) == set(one)
    assert [running[key] for key in ("place", "reason", "reason_in_words", "expected_wait_s")] == [
        None
    ] * 4


@on_a_loop
async def test_without_requests_or_a_model_the_list_is_empty() -> None:
    async with open_client(FakeEngine(ready=False)) as client:
        assert (await client.get("/v1/runs")).json() == {"object": "list", "data": []}


@pytest.mark.parametrize(
    ("action", "body", "command"),
    [
        ("park", None, ParkNow(request_id="r1")),
        ("resume", None, ResumeNext(request_id="r1")),
        ("pin", None, Pin(request_id="r1")),
        ("unpin", None, Pin(request_id="r1", is_pinned=False)),
        (
            "priority",
            {"priority": "background"},
            SetPriority(request_id="r1", priority=Priority.BACKGROUND),
        ),
    ],
)
@on_a_loop
async def test_steering_becomes_a_command_and_answers_with_the_run(
    action: str, body: dict[str, str] | None, command: object
) -> None:
    engine = an_engine(make_run("r1"))
    async with open_client(engine) as client:
        answer = await client.post(f"/v1/runs/r1/{action}", json=body)
    assert (answer.status_code, answer.json()["id"]) == (202, "r1")
    assert engine.commands == [command]


def an_engine_with_a_reply_of_three() -> FakeEngine:
    """Two of its choices are left, and others have names that only look alike."""
    return an_engine(
        *(make_run(name) for name in ("chatcmpl-a-0", "chatcmpl-a-2", "chatcmpl-ab-0")),
        *(make_run(name) for name in ("chatcmpl-a-0-1", "chatcmpl-a-x")),
    )


@pytest.mark.parametrize(
    ("action", "make"), [("park", ParkNow), ("resume", ResumeNext), ("pin", Pin)]
)
@on_a_loop
async def test_the_id_of_a_response_means_all_its_choices(action: str, make: type) -> None:
    engine = an_engine_with_a_reply_of_three()
    async with open_client(engine) as client:
        shown = await client.get("/v1/runs/chatcmpl-a")
        answer = await client.post(f"/v1/runs/chatcmpl-a/{action}")
    assert (shown.status_code, answer.status_code) == (200, 202)
    assert shown.json() == answer.json()
    assert shown.json()["object"] == "list"
    names = ["chatcmpl-a-0", "chatcmpl-a-2"]
    assert [run["id"] for run in shown.json()["data"]] == names
    assert engine.commands == [make(request_id=name) for name in reversed(names)], (
        "the first returns first"
    )


@on_a_loop
async def test_an_empty_number_or_the_start_of_an_id_names_no_response() -> None:
    async with open_client(an_engine_with_a_reply_of_three()) as client:
        for name in ("chatcmpl", "chatcmpl-a-", "chatcmpl-a-1"):
            assert_error(await client.get(f"/v1/runs/{name}"), 404, "run_not_found")


@on_a_loop
async def test_with_parking_off_a_park_is_refused_and_not_only_passed_over() -> None:
    engine = an_engine(make_run("r1"))
    engine.publish(make_run("r1"), parks=ParkUsage(budget_bytes=0))
    async with open_client(engine) as client:
        words = assert_error(await client.post("/v1/runs/r1/park"), 409, "parking_off")
        answer = await client.post("/v1/runs/r1/resume")
    assert "--preempt-ram" in words
    assert (answer.status_code, engine.commands) == (202, [ResumeNext(request_id="r1")])


@pytest.mark.parametrize("action", ["", "/park", "/resume", "/pin", "/unpin", "/priority"])
@on_a_loop
async def test_an_unknown_id_is_not_found_and_nothing_is_asked_of_the_engine(action: str) -> None:
    engine = an_engine(make_run("r1"))
    async with open_client(engine) as client:
        if action:
            answer = await client.post(f"/v1/runs/r2{action}", json={"priority": "normal"})
        else:
            answer = await client.get("/v1/runs/r2")
    assert "'r2'" in assert_error(answer, 404, "run_not_found")
    assert engine.commands == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b"{}", "priority"),
        (b'{"priority": 1}', "priority"),
        (b'{"priority": "urgent"}', "priority"),
    ],
)
@on_a_loop
async def test_a_body_that_is_no_priority_is_refused(body: bytes, param: str | None) -> None:
    engine = an_engine(make_run("r1"))
    async with open_client(engine) as client:
        answer = await client.post("/v1/runs/r1/priority", content=body)
    words = assert_error(answer, 400, "invalid_value", param)
    if b"urgent" in body:
        assert "interactive, normal, background" in words
    assert engine.commands == []


@on_a_loop
async def test_an_action_nobody_knows_is_an_unknown_path() -> None:
    async with open_client(an_engine(make_run("r1"))) as client:
        assert_error(await client.post("/v1/runs/r1/kick"), 404, "unknown_path")


@on_a_loop
async def test_runs_need_the_key() -> None:
    engine = an_engine(make_run("r1"))
    async with open_client(engine, settings=ServerSettings(api_key="k")) as client:
        assert_error(await client.get("/v1/runs"), 401, "invalid_api_key")
        assert_error(await client.post("/v1/runs/r1/park"), 401, "invalid_api_key")
    assert engine.commands == []
