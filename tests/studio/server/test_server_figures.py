"""/metrics, /slots and /props tell the same snapshot, each in its own form."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.api import LoadOptions
from engine.runs import ParkUsage, RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import assert_error, on_a_loop, open_client
from fakes.runs import make_run

MIB = 1 << 20
PARKS = ParkUsage(
    budget_bytes=8 * MIB,
    used_bytes=MIB,
    num_parks=7,
    num_resumes=5,
    num_recomputes=3,
    num_rotations=2,
    num_last_resorts=1,
)


def a_busy_engine() -> FakeEngine:
    engine = FakeEngine(auto=False)
    engine.publish(
        make_run("r1"),
        replace(make_run("r2", RunState.PARKED), num_parks=2, num_recomputes=1),
        make_run("r3", RunState.BEING_PARKED),
        make_run("r4", RunState.QUEUED),
        parks=PARKS,
    )
    options = LoadOptions(parallel=3, preempt_policy="cost", preempt_async=True)
    engine._snapshot = replace(engine.snapshot(), options=options, waiting=1, tokens_per_s=12.5)
    return engine


def figures(answer: httpx.Response) -> dict[str, float]:
    """Read by the library's own parser."""
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.mark.parametrize("prefix", ["layby:", "llamacpp:"])
@on_a_loop
async def test_metrics_have_both_names(prefix: str) -> None:
    async with open_client(a_busy_engine()) as client:
        answer = await client.get("/metrics")
    told = figures(answer)
    expected = {
        "n_preempt_total": 7,
        "n_resume_total": 5,
        "preempt_recompute_total": 3,
        "preempt_rotation_total": 2,
        "preempt_last_resort_total": 1,
        "requests_preempted": 2,
        "requests_processing": 3,
        "requests_deferred": 1,
        "predicted_tokens_seconds": 12.5,
        "preempt_ram_bytes": MIB,
        "preempt_ram_budget_bytes": 8 * MIB,
        "pool_pages": 64,
        "pool_pages_free": 64,
        "pool_pages_reusable": 0,
    }
    assert {name: value for name, value in told.items() if name.startswith(prefix)} == {
        prefix + name: value for name, value in expected.items()
    }
    assert f"# TYPE {prefix}n_preempt_total counter" in answer.text
    assert f"# TYPE {prefix}requests_preempted gauge" in answer.text


@on_a_loop
async def test_metrics_are_there_without_a_model_and_at_rest() -> None:
    async with open_client(FakeEngine(ready=False)) as client:
        told = figures(await client.get("/metrics"))
    assert set(told.values()) == {0}


@on_a_loop
async def test_slots_list_seats_and_the_parked_and_tell_parked_from_moving() -> None:
    async with open_client(a_busy_engine()) as client:
        slots = (await client.get("/slots")).json()
    assert [slot["id"] for slot in slots] == [0, 1, 2, 3]
    assert [slot.get("id_task") for slot in slots] == ["r1", "r2", "r3", None]
    assert [slot["is_processing"] for slot in slots] == [True, True, True, False]
    assert [slot["is_preempted"] for slot in slots] == [False, True, False, False]
    assert [slot["is_transferring"] for slot in slots] == [False, False, True, False]
    assert (slots[1]["n_preempt"], slots[1]["n_recompute"]) == (2, 1)
    assert {slot["n_ctx"] for slot in slots} == {2048}
    assert slots[2]["n_prompt_tokens"] > 0


@on_a_loop
async def test_props_tell_exactness_and_how_requests_are_parked() -> None:
    engine = a_busy_engine()
    async with open_client(engine) as client:
        props = (await client.get("/props")).json()
        engine._snapshot = replace(engine.snapshot(), inexact_ops=("linear",), kernels="torch cpu")
        engine.publish(parks=replace(PARKS, is_async=True))
        inexact = (await client.get("/props")).json()
    assert props["exact_concurrency"] is True
    assert props["total_slots"] == 3
    texts = [props[name] for name in ("chat_template", "bos_token", "eos_token")]
    assert texts == ["{{ messages }}", "<s>", "</s>"]
    assert props["modalities"] == {"vision": False, "audio": False}
    assert props["build_info"].startswith("layby-")
    assert (props["kv_type"], props["kv_bytes_per_token"]) == ("f16", 32)
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["preempt"] == {
        "enabled": True,
        "ram_mib": 8,
        "async": False,
        "notices": True,
        "recurrent": False,
        "granularity": 32,
        "policy": "cost",
    }
    assert (inexact["exact_concurrency"], inexact["inexact_ops"]) == (False, ["linear"])
    assert inexact["preempt"]["async"] is True, "what is, not what was asked for at load"
    assert inexact["kernels"] == "torch cpu"


@pytest.mark.parametrize(("budget", "mib", "is_on"), [(0, 0, False), (-1, -1, True), (5, 1, True)])
@on_a_loop
async def test_props_tell_the_budget_as_the_flag_has_it(budget: int, mib: int, is_on: bool) -> None:
    engine = FakeEngine()
    engine.publish(parks=ParkUsage(budget_bytes=budget))
    async with open_client(engine) as client:
        preempt = (await client.get("/props")).json()["preempt"]
    assert (preempt["enabled"], preempt["ram_mib"]) == (is_on, mib)


@pytest.mark.parametrize("path", ["/slots", "/props"])
@on_a_loop
async def test_without_a_model_there_are_no_slots_and_props(path: str) -> None:
    async with open_client(FakeEngine(ready=False)) as client:
        assert_error(await client.get(path), 503, "model_unavailable")
