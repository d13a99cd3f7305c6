"""The real engine on a tiny model: what was parked goes on after its model, or the whole program, went away."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from engine.api import (
    Failed,
    Finished,
    FinishReason,
    KvType,
    Parked,
    Restored,
    Resumed,
    SamplingParams,
    TokenDelta,
    UnloadModel,
)
from engine.errors import Suspended
from engine.factory import create_engine
from engine.runs import ForgetSaved, ParkCause, ResumeNext, Suspend
from engine.runtime.disk.saved_state import SavedState
from engine.runtime.disk.state_folder import SUFFIX, StateFolder
from engine.runtime.engine import Engine
from fakes.disk_rig import (
    ID,
    LONG,
    REPLY_TOKENS,
    comeback,
    command_at,
    command_at_park,
    durable,
    files,
    park,
    resumed,
    settled_without_files,
    wait_on_disk,
)
from fakes.listening import Ear, run_all, submit_together
from fakes.native_rig import needs_kernels
from fakes.parking_rig import ask, assert_nothing_is_held, inside, load, tokens_alone

NATIVE: dict[str, object] = {"cpu_variant": "native"}
WAYS: dict[str, dict[str, object]] = {
    "in place": {},
    "copied": {"test_preempt_copy": True},
    "copied within the step": {"test_preempt_copy": True, "preempt_async": False},
    "as bytes": {"kv_type": KvType.Q8_0},
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.8, seed=11, repetition_penalty=1.1),
    "seed drawn": SamplingParams(temperature=0.8),
}


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("way", [*WAYS, pytest.param("native", marks=needs_kernels)])
def test_a_parked_request_goes_on_in_another_engine_with_the_tokens_of_an_undisturbed_run(
    tmp_path: Path, model_path: Path, way: str, sampling: str
) -> None:
    request = durable(sampling=SAMPLINGS[sampling])
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path, **WAYS.get(way, NATIVE)}
    if sampling == "seed drawn":
        options["seed"] = 5
    first = create_engine()
    assert isinstance(first, Engine)
    load(first, model_path, **options)
    alone = tokens_alone(first, [ask(ID, max_tokens=REPLY_TOKENS, sampling=SAMPLINGS[sampling])])
    before = park(first, request)
    wait_on_disk(first, tmp_path)
    saved = (tmp_path / f"{ID}{SUFFIX}").read_bytes()
    first.shutdown()
    assert (tmp_path / f"{ID}{SUFFIX}").read_bytes() == saved

    options.pop("seed", None)
    second = create_engine()
    assert isinstance(second, Engine)
    load(second, model_path, **options)
    assert second.snapshot().saved_ids == (ID,)
    ear = Ear(second)
    second.submit(comeback())
    end = ear.wait_end(ID)
    event = resumed(ear)
    second.shutdown()

    assert isinstance(end, Finished), end
    assert list(event.token_ids) == before.tokens(ID)
    assert event.text == before.text(ID)
    assert [*event.token_ids, *ear.tokens(ID)] == alone[ID]
    assert end.usage.completion_tokens == REPLY_TOKENS
    kinds = [type(one) for one in ear.of(ID) if not isinstance(one, TokenDelta)]
    assert kinds == [Resumed, Restored, Finished]
    assert end.usage.num_parks == 1
    assert end.usage.num_recomputes == 0, "its pages were used again"
    assert files(tmp_path) == []


def test_pages_of_the_file_are_used_and_only_the_last_tokens_are_computed_again(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path, "batch_tokens": 16}
    load(engine, model_path, **options)
    park(engine, durable(), at_token=100)
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, **options)
    ear = run_all(engine, [comeback()])
    (back,) = (event for event in ear.events if isinstance(event, Restored))
    assert back.recomputed_tokens == 0
    progress = [event for event in ear.of(ID) if type(event).__name__ == "PromptProgress"]
    assert len(progress) <= 2, "no more than a page of 32 tokens, 16 a step"
    inside(engine).scheduler.check()


@pytest.mark.parametrize("way", WAYS)
def test_a_running_request_is_kept_when_its_model_is_loaded_again(
    engine: Engine, tmp_path: Path, model_path: Path, way: str
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path, **WAYS[way]}
    load(engine, model_path, **options)
    (alone,) = tokens_alone(engine, [durable()]).values()
    ear = Ear(engine)
    command_at(engine, 40, UnloadModel())
    engine.submit(durable())
    end = ear.wait_end(ID)
    ear.close()
    load(engine, model_path, **options)
    assert isinstance(end, Failed)
    assert isinstance(end.error, Suspended)
    back = run_all(engine, [comeback()])
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone
    assert ear.tokens(ID) == list(resumed(back).token_ids)
    assert files(tmp_path) == []
    assert_nothing_is_held(engine)


def test_requests_in_every_state_are_kept_and_all_go_on(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"preempt_disk": tmp_path, "parallel": 3}
    requests = [ask(f"r{n}", is_durable=True) for n in range(5)]
    load(engine, model_path, pool_tokens=LONG)
    alone = tokens_alone(engine, requests)
    load(engine, model_path, **options)
    ear = Ear(engine)
    command_at_park(engine, UnloadModel())
    submit_together(engine, requests)
    ends = [ear.wait_end(request.request_id) for request in requests]
    ear.close()
    kept = [one for one in ends if isinstance(one, Failed) and isinstance(one.error, Suspended)]
    assert len(kept) == len(requests)
    assert not ear.tokens("r4"), "one has said nothing yet"
    load(engine, model_path, **options)
    back_ids = [end.request_id for end in kept]
    assert sorted(engine.snapshot().saved_ids) == back_ids
    again = [ask(one, is_durable=True, resumes=True) for one in back_ids]
    back = run_all(engine, again)
    for request_id in back_ids:
        (event,) = (one for one in back.of(request_id) if isinstance(one, Resumed))
        assert list(event.token_ids) == ear.tokens(request_id)
        assert [*event.token_ids, *back.tokens(request_id)] == alone[request_id]
    assert engine.snapshot().saved_ids == ()
    assert_nothing_is_held(engine)


def test_a_reply_beyond_the_window_goes_on_after_a_shift(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"preempt_disk": tmp_path, "context_shift": True}
    request = ask(ID, max_tokens=450, is_durable=True, stop=("\x00never",))
    load(engine, model_path, **options)
    alone = run_all(engine, [request])
    before = park(engine, request, at_token=350)
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, **options)
    back = run_all(engine, [comeback()])
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone.tokens(ID)
    assert resumed(back).text == before.text(ID)
    assert resumed(back).text + back.text(ID) == alone.text(ID)


def test_a_stop_string_is_found_across_the_break(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    plain = run_all(engine, [durable()]).text(ID)
    request = durable(stop=(plain[60:75],))
    alone = run_all(engine, [request])
    end = alone.wait_end(ID)
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.STOP
    for at_token in range(end.usage.completion_tokens - 12, end.usage.completion_tokens, 4):
        before = park(engine, request, at_token=at_token)
        wait_on_disk(engine, tmp_path)
        load(engine, model_path, **options)
        back = run_all(engine, [comeback()])
        assert before.text(ID) + back.text(ID) == alone.text(ID)
        assert back.wait_end(ID).reason is FinishReason.STOP  # type: ignore[union-attr]


def test_the_file_goes_when_the_request_comes_back_or_is_aborted(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    ear = Ear(engine)
    engine.control(ResumeNext(request_id=ID))
    ear.wait_end(ID)
    ear.close()
    assert settled_without_files(engine, tmp_path)
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    engine.abort(ID)
    assert settled_without_files(engine, tmp_path)
    assert_nothing_is_held(engine)


def test_only_durable_requests_are_written(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    load(engine, model_path, preempt_disk=tmp_path)
    ear = run_all(engine, [ask(f"r{n}") for n in range(4)])
    assert any(isinstance(event, Parked) for event in ear.events)
    assert files(tmp_path) == []


def test_suspending_keeps_a_running_request_and_forgetting_deletes_it(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    ear = Ear(engine)
    command_at(engine, 40, Suspend(request_id=ID))
    engine.submit(durable())
    end = ear.wait_end(ID)
    assert isinstance(end, Failed)
    assert isinstance(end.error, Suspended)
    engine.abort(ID)  # what a client does that leaves its stream
    assert_nothing_is_held(engine)
    assert files(tmp_path) == [f"{ID}{SUFFIX}"]
    load(engine, model_path, **options)
    engine.control(ForgetSaved(request_ids=(ID, "unknown")))
    assert settled_without_files(engine, tmp_path)
    assert engine.snapshot().saved_ids == ()


def test_who_goes_on_while_the_pool_is_full_waits_his_turn_in_line(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    (alone,) = tokens_alone(engine, [durable()]).values()
    park(engine, durable(), at_token=120)
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, preempt_disk=tmp_path)
    ear = Ear(engine)
    others = [ask(f"r{n}") for n in range(3)]
    for request in others:
        engine.submit(request)
    ear.wait_until(lambda: len(ear.tokens("r2")) > 20)
    engine.submit(comeback())
    for request in [*others, comeback()]:
        assert isinstance(ear.wait_end(request.request_id), Finished)
    first = next(event for event in ear.of(ID) if not isinstance(event, Resumed))
    if isinstance(first, Parked):
        assert first.reason.cause is ParkCause.ON_DISK
        assert first.place > 0
    assert [*resumed(ear).token_ids, *ear.tokens(ID)] == alone
    assert_nothing_is_held(engine)


def test_a_pool_that_is_full_takes_what_pages_it_can_and_the_rest_is_computed(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    (alone,) = tokens_alone(engine, [durable()]).values()
    park(engine, durable(), at_token=140)
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, preempt_disk=tmp_path, preempt_ram_mib=0)
    ear = Ear(engine)
    engine.submit(ask("big", max_tokens=150))
    ear.wait_until(lambda: len(ear.tokens("big")) > 120)
    engine.submit(comeback())
    assert isinstance(ear.wait_end("big"), Finished)
    assert isinstance(ear.wait_end(ID), Finished)
    assert [*resumed(ear).token_ids, *ear.tokens(ID)] == alone
    assert_nothing_is_held(engine)


def test_a_deletion_that_is_still_to_come_does_not_take_a_newer_file(
    engine: Engine, tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request came back, and is put aside anew while the thread has not got round to deleting the first file."""
    may_go_on, is_busy, write = threading.Event(), threading.Event(), StateFolder.write

    def slow_write(folder: StateFolder, state: SavedState, *rest: Any) -> Any:
        if state.request_id == "other":
            is_busy.set()
            assert may_go_on.wait(60)
        return write(folder, state, *rest)

    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    (alone,) = tokens_alone(engine, [durable()]).values()
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    monkeypatch.setattr(StateFolder, "write", slow_write)
    park(engine, ask("other", is_durable=True), at_token=5)
    assert is_busy.wait(60)
    ear = Ear(engine)
    command_at(engine, 3, Suspend(request_id=ID))
    engine.control(ResumeNext(request_id=ID))
    ear.wait_end(ID)
    ear.close()
    may_go_on.set()
    monkeypatch.undo()
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    back = run_all(engine, [comeback()])
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone
