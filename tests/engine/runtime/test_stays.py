"""Replies that are kept after their end by the real engine: one that follows says the same bytes, whatever became of
the state meanwhile; nothing that is let go of stays behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import (
    Device,
    EngineSnapshot,
    EngineState,
    Finished,
    LoadModel,
    LoadOptions,
    Request,
    RequestGroup,
    Started,
    Stay,
    TokenIds,
    UnloadModel,
)
from engine.core.types import SeqStatus
from engine.errors import InvalidRequest
from engine.runs import RunState, WaitKind
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, inside, load, settled

STAYS = Stay(grace_s=1000.0, after_any_end=True)
LENT = Stay(grace_s=0.0, after_any_end=True)
NEW_IDS = (5, 9, 17)


def first_reply(engine: Engine, stays: Stay | None) -> tuple[int, ...]:
    """The tokens of a first request, prompt and reply, which then stays."""
    prompt = tuple(range(3, 40))
    reply = run_all(engine, [ask("first", prompt=TokenIds(ids=prompt), stays=stays)])
    return prompt + tuple(reply.tokens("first"))


def second(ids: tuple[int, ...], *, follows: str = "") -> Request:
    return ask("second", prompt=TokenIds(ids=ids + NEW_IDS), max_tokens=40, follows=follows)


def said_alone(engine: Engine) -> tuple[tuple[int, ...], list[int]]:
    """What the two say without anybody staying, and all of it read anew."""
    ids = first_reply(engine, None)
    inside(engine).scheduler.pool.purge()
    return ids, run_all(engine, [second(ids)]).tokens("second")


def once_copied(engine: Engine) -> EngineSnapshot:
    """The engine's snapshot once no copy out runs beside the steps any more."""
    for _ in range(1000):
        snapshot = settled(engine)
        if not inside(engine).scheduler.line(SeqStatus.PARKING):
            return snapshot
    raise AssertionError("a copy never lands")


@pytest.mark.parametrize(
    ("options", "stays", "is_kept"),
    [
        pytest.param({}, STAYS, True, id="in the pool"),
        pytest.param({}, LENT, True, id="parked in place"),
        pytest.param({"device": Device.CPU, "cpu_variant": "torch"}, LENT, True, id="torch"),
        pytest.param({"test_preempt_copy": True}, LENT, True, id="copied"),
        pytest.param({"test_preempt_copy": True}, STAYS, True, id="in the pool, copies"),
        pytest.param({"preempt_ram_mib": 0}, LENT, False, id="dropped"),
    ],
)
def test_one_that_follows_says_the_same_bytes(
    engine: Engine, model_path: Path, options: dict[str, object], stays: Stay, *, is_kept: bool
) -> None:
    load(engine, model_path, **options)
    ids, alone = said_alone(engine)
    assert first_reply(engine, stays) == ids
    snapshot = once_copied(engine)
    (run,) = (run for run in snapshot.runs if run.request_id == "first")
    assert run.state is RunState.AWAITS_OWNER
    assert (run.wait is not None and run.wait.kind is WaitKind.OWNER) == (stays is LENT)
    assert (snapshot.running, snapshot.parked) == (0, 0)
    if not is_kept:
        inside(engine).scheduler.pool.purge()
    ear = run_all(engine, [second(ids, follows="first")])
    assert ear.tokens("second") == alone
    (started,) = (event for event in ear.of("second") if isinstance(event, Started))
    assert started.cached_tokens == (len(ids) - 1 if is_kept else 0)
    assert_nothing_is_held(engine)


def test_without_a_tool_call_nothing_stays_unless_asked(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    first_reply(engine, Stay(grace_s=1000.0))
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("stays", [STAYS, LENT])
def test_an_abort_lets_go_and_says_nothing_more(
    engine: Engine, model_path: Path, stays: Stay
) -> None:
    load(engine, model_path)
    ear = Ear(engine)
    first_reply(engine, stays)
    engine.abort("first")
    assert_nothing_is_held(engine)
    assert sum(isinstance(event, Finished) for event in ear.of("first")) == 1


def test_a_new_request_of_the_same_id_takes_its_place(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ids = first_reply(engine, STAYS)
    assert first_reply(engine, STAYS) == ids
    engine.abort("first")
    assert_nothing_is_held(engine)


def test_whoever_stays_keeps_no_model_loaded(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ids = first_reply(engine, STAYS)
    ear = Ear(engine)
    engine.control(UnloadModel(only_if_idle=True))
    ear.wait_for(lambda event: getattr(event, "state", None) is EngineState.NO_MODEL)
    assert engine.snapshot().runs == ()
    engine.control(LoadModel(path=model_path, name="tiny", options=LoadOptions(pool_tokens=256)))
    reply = run_all(engine, [second(ids, follows="first")])
    assert len(reply.tokens("second")) == 40


def test_a_request_of_a_group_can_neither_stay_nor_follow() -> None:
    group = RequestGroup(group_id="g", size=2)
    with pytest.raises(InvalidRequest, match="neither stay nor follow"):
        ask("r0", group=group, stays=STAYS)
    with pytest.raises(InvalidRequest, match="neither stay nor follow"):
        ask("r0", group=group, follows="first")
