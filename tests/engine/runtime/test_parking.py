"""The real engine on a tiny model, its pool too small for what it is asked: each reply is as alone."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.api import Failed, Finished, KvType, Parked, Restored
from engine.core.parked import CopyWay
from engine.core.types import StepRow
from engine.errors import ContextLengthExceeded, DeviceFailure, PoolFull
from engine.factory import create_engine
from engine.runs import POLICY_NAMES, ParkCause, SetParkBudget
from engine.runtime import kv_arena, loaded_model, model_runner, page_copier
from engine.runtime.copies import Finish
from engine.runtime.device_copies import DeviceCopies
from engine.runtime.engine import Engine
from engine.runtime.host_copies import HostCopies
from engine.runtime.kv_arena import KvArena
from fakes.fake_lane import FakeLane
from fakes.listening import Ear, run_all, submit_together
from fakes.parking_rig import (
    REPLY_TOKENS,
    ask,
    assert_nothing_is_held,
    four,
    inside,
    load,
    parks_of,
    tokens_alone,
)

COPIED: dict[str, object] = {"test_preempt_copy": True}
SMALL_BUDGET = 10_000
"""Bytes: more than a page, less than any state of several."""


@pytest.fixture(scope="module")
def alone(model_path: Path) -> dict[str, list[int]]:
    engine = create_engine()
    try:
        load(engine, model_path, pool_tokens=2048)
        return tokens_alone(engine, four())
    finally:
        engine.shutdown()


def assert_all_as_alone(ear: Ear, alone: dict[str, list[int]]) -> None:
    """All finished with the tokens they have alone, and every park was told, closed and counted."""
    for request_id, tokens in alone.items():
        end = ear.wait_end(request_id)
        assert isinstance(end, Finished), end
        assert ear.tokens(request_id) == tokens
        parks = parks_of(ear, request_id)
        returns = [event for event in ear.of(request_id) if isinstance(event, Restored)]
        assert len(parks) == len(returns) == end.usage.num_parks
        assert bool(parks) == (end.usage.parked_s > 0)
        read_again = [event for event in returns if event.recomputed_tokens]
        assert len(read_again) <= end.usage.num_recomputes <= end.usage.num_parks


WAYS: dict[str, dict[str, object]] = {
    "in place": {},
    "copied within the step": {**COPIED, "preempt_async": False},
    "copied beside the steps": COPIED,
    "every eight tokens": {"test_preempt_every": 8},
    "every eight tokens, copied": {"test_preempt_every": 8, **COPIED},
    "planner off": {"test_preempt_planner": False},
    "planner off, copied": {"test_preempt_planner": False, **COPIED},
    "a save that fails": {"test_preempt_fail_save": 1},
    "planned in blocks": {"test_preempt_granularity": 64},
    "anybody may pass": {"test_preempt_resume": "pass"},
    "no limit": {"preempt_ram_mib": -1},
    **{f"policy {name}": {"preempt_policy": name} for name in POLICY_NAMES},
}


@pytest.mark.parametrize("way", WAYS)
def test_four_that_overflow_the_pool_all_finish_and_say_what_they_say_alone(
    engine: Engine, model_path: Path, alone: dict[str, list[int]], way: str
) -> None:
    load(engine, model_path, **WAYS[way])
    ear = run_all(engine, four())
    assert any(isinstance(event, Parked) for event in ear.events)
    assert_all_as_alone(ear, alone)
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("way", ["in place", "copied beside the steps", "every eight tokens"])
def test_keys_and_values_as_bytes_are_parked_as_exactly(
    engine: Engine, model_path: Path, way: str
) -> None:
    load(engine, model_path, pool_tokens=2048, kv_type=KvType.Q8_0)
    alone = tokens_alone(engine, four())
    load(engine, model_path, kv_type=KvType.Q8_0, **WAYS[way])
    ear = run_all(engine, four())
    assert any(isinstance(event, Parked) for event in ear.events)
    assert_all_as_alone(ear, alone)
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("options", [{}, COPIED], ids=["in place", "copied"])
def test_a_state_larger_than_the_budget_is_computed_again(
    engine: Engine, model_path: Path, alone: dict[str, list[int]], options: dict[str, object]
) -> None:
    load(engine, model_path, **options)
    engine.control(SetParkBudget(budget_bytes=SMALL_BUDGET))
    ear = run_all(engine, four())
    assert_all_as_alone(ear, alone)
    returns = [event for event in ear.events if isinstance(event, Restored)]
    assert any(event.recomputed_tokens > 1 for event in returns)
    ends = [ear.wait_end(request_id) for request_id in alone]
    assert sum(end.usage.num_recomputes for end in ends if isinstance(end, Finished)) > 0
    assert_nothing_is_held(engine)


def test_with_parking_off_only_the_newest_that_does_not_fit_ends(
    engine: Engine, model_path: Path, alone: dict[str, list[int]]
) -> None:
    load(engine, model_path, preempt_ram_mib=0)
    ear = run_all(engine, four())
    ends = {request_id: ear.wait_end(request_id) for request_id in alone}
    failed = [end for end in ends.values() if isinstance(end, Failed)]
    assert [end.request_id for end in failed] == ["r2", "r3"], "r0 and r1 fit together"
    for end in failed:
        assert isinstance(end.error, PoolFull)
        assert isinstance(end.error, ContextLengthExceeded)
        assert "Context size has been exceeded." in str(end.error)
        assert end.partial
        said = ear.tokens(end.request_id)
        assert said == alone[end.request_id][: len(said)]
    for request_id in ("r0", "r1"):
        assert ear.tokens(request_id) == alone[request_id]
    assert not any(isinstance(event, Parked) for event in ear.events)
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("options", [{}, COPIED], ids=["in place", "copied"])
def test_replies_longer_than_the_window_go_on_and_are_as_alone(
    engine: Engine, model_path: Path, options: dict[str, object]
) -> None:
    load(engine, model_path, context_shift=True, **options)
    requests = four(max_tokens=300)[:3]
    alone = tokens_alone(engine, requests)
    ear = run_all(engine, requests)
    assert {len(tokens) for tokens in alone.values()} == {300}
    assert any(isinstance(event, Parked) for event in ear.events)
    assert_all_as_alone(ear, alone)
    assert_nothing_is_held(engine)


def test_without_context_shift_a_reply_ends_where_the_window_does(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path)
    ear = run_all(engine, [ask("long", max_tokens=450)])
    end = ear.wait_end("long")
    assert isinstance(end, Finished)
    assert end.usage.prompt_tokens + end.usage.completion_tokens == 256


def test_a_host_without_memory_for_a_state_makes_it_be_computed_again(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(page_copier.PageCopier, "_provide", no_memory)
    load(engine, model_path, **COPIED)
    ear = run_all(engine, four())
    assert_all_as_alone(ear, alone)
    assert engine.snapshot().parks.num_recomputes == engine.snapshot().parks.num_parks > 0
    assert_nothing_is_held(engine)
    assert "could not be copied" in caplog.text


@pytest.mark.parametrize("is_async", [True, False])
def test_a_restore_that_fails_is_tried_again_shortly(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_async: bool,
) -> None:
    start = HostCopies.start
    tries = iter(range(1000))

    def fail_first(self: HostCopies, way: CopyWay, *of: Any, is_beside: bool) -> Finish:
        finish = start(self, way, *of, is_beside=is_beside)

        def fail() -> None:
            raise MemoryError

        return fail if way is CopyWay.IN and next(tries) == 0 else finish

    monkeypatch.setattr(HostCopies, "start", fail_first)
    load(engine, model_path, preempt_async=is_async, **COPIED)
    ear = run_all(engine, four())
    assert next(tries) > 1
    assert_all_as_alone(ear, alone)
    assert_nothing_is_held(engine)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("every", [0, 8])
@pytest.mark.parametrize("pageable", [(), (1,), range(999)], ids=["pinned", "one not", "none"])
def test_copies_beside_a_device_are_exact_and_hold_up_nobody_but_who_cannot_be_pinned(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    pageable: Iterable[int],
    every: int,
) -> None:
    lane = FakeLane(pageable)
    monkeypatch.setattr(
        loaded_model,
        "choose_copies",
        lambda pool, mover, is_async: DeviceCopies(torch.from_numpy(pool), lane),
    )
    load(engine, model_path, test_preempt_every=every, **COPIED)
    ear = run_all(engine, four())
    assert_all_as_alone(ear, alone)
    assert lane.pins > 1
    options = engine.snapshot().options
    assert options is not None
    assert options.preempt_async == (not pageable)
    assert_nothing_is_held(engine)
    assert not lane.pinned


def test_a_step_that_finds_no_memory_parks_somebody_and_goes_on(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kv_arena, "_MOST_AHEAD_BYTES", 0)
    load(engine, model_path, pool_tokens=1024)
    free = model_runner.free_bytes
    is_scarce = [True]
    monkeypatch.setattr(
        model_runner,
        "free_bytes",
        lambda device: 0 if is_scarce[0] and len(ear.tokens("r3")) > 30 else free(device),
    )
    ear = Ear(engine)

    def relieve(events: tuple[object, ...]) -> None:
        if any(isinstance(event, Parked) for event in events):
            is_scarce[0] = False

    stop = engine.subscribe(relieve)
    submit_together(engine, four())
    assert_all_as_alone(ear, alone)
    stop()
    causes = {event.reason.cause for event in ear.events if isinstance(event, Parked)}
    assert causes == {ParkCause.LAST_RESORT}
    parks = engine.snapshot().parks
    assert 1 <= parks.num_parks <= 3, "somebody goes on; one page with memory may need two to leave"
    assert parks.num_last_resorts >= 1, "one that finds idle pages with memory parks nobody"
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("seats", [1, 4])
@pytest.mark.parametrize("ram_mib", [8192, 0])
def test_no_step_writes_where_there_is_no_memory_however_long_there_is_none(
    engine: Engine,
    model_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ram_mib: int,
    seats: int,
) -> None:
    monkeypatch.setattr(kv_arena, "_MOST_AHEAD_BYTES", 0)
    load(engine, model_path, pool_tokens=1024, parallel=seats, preempt_ram_mib=ram_mib)
    ear = Ear(engine)
    monkeypatch.setattr(
        model_runner, "free_bytes", lambda device: 0 if ear.tokens("r0") else 1 << 40
    )
    execute, cold = model_runner.ModelRunner.execute, []

    def look(runner: model_runner.ModelRunner, rows: tuple[StepRow, ...], *more: Any) -> Any:
        pages = [page for row in rows for page in model_runner._pages_written(row)]
        arena = runner._open_arena()
        assert isinstance(arena, KvArena)
        cold.extend(page for page in pages if not arena._is_committed[page])
        return execute(runner, rows, *more)

    monkeypatch.setattr(model_runner.ModelRunner, "execute", look)
    submit_together(engine, four())
    ends = [ear.wait_end(request.request_id) for request in four()]
    assert not cold
    errors = [end.error for end in ends if isinstance(end, Failed)]
    assert {type(error) for error in errors} <= {PoolFull, DeviceFailure}
    assert_nothing_is_held(engine)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system as Linux is asked")
def test_memory_of_parked_states_is_given_back_to_the_system(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path)
    pool = inside(engine).runner.pool
    pool_bytes = inside(engine).runner.num_pages * inside(engine).runner.page_bytes
    most = [0]

    def look(_: tuple[object, ...]) -> None:
        # At every step: a park changes only who owns the pages; the memory grows in the steps after it.
        most[0] = max(most[0], _resident_bytes(pool))

    stop = engine.subscribe(look)
    run_all(engine, four())
    stop()
    assert_nothing_is_held(engine)
    assert most[0] > pool_bytes, "what is parked lies beside the pool"
    assert 0 < _resident_bytes(pool) <= pool_bytes


def _resident_bytes(pool: np.ndarray) -> int:
    """Physical memory behind the pool."""
    start = pool.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    pages = -(-(pool.ctypes.data + pool.nbytes - start) // mmap.PAGESIZE)
    answer = np.empty(pages, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mincore(
        ctypes.c_void_p(start),
        ctypes.c_size_t(pages * mmap.PAGESIZE),
        ctypes.c_void_p(answer.ctypes.data),
    )
    assert not failed, ctypes.get_errno()
    return int(np.count_nonzero(answer & 1)) * mmap.PAGESIZE


def test_the_tokens_asked_for_are_those_of_the_rig(alone: dict[str, list[int]]) -> None:
    assert {len(tokens) for tokens in alone.values()} == {REPLY_TOKENS}
