"""The real engine on a tiny model: requests go on after it is loaded anew, to the bytes of an undisturbed run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    Failed,
    Finished,
    FinishReason,
    LoadModel,
    LoadOptions,
    Parked,
    Priority,
    RequestGroup,
    Restored,
    SamplingParams,
    Started,
    TokenDelta,
    UnloadModel,
)
from engine.errors import ContextLengthExceeded, ModelUnavailable, NotEnoughMemory, Suspended
from engine.runs import ParkCause, ParkNow, Pin, ResumeNext, RunState, SetPriority
from engine.runtime.engine import Engine
from engine.runtime.model_runner import ModelRunner
from fakes.disk_rig import (
    ID,
    LONG,
    comeback,
    command_at,
    command_at_park,
    resumed,
    settled_without_files,
)
from fakes.listening import Ear, run_all, submit_together
from fakes.native_rig import needs_kernels
from fakes.parking_rig import (
    ask,
    assert_nothing_is_held,
    four,
    inside,
    load,
    settled,
    tokens_alone,
)
from fakes.tiny_files import write_tiny_gguf


def again(path: Path, *, carries_on: bool = True, **options: object) -> LoadModel:
    """The same model with other options."""
    options = {"pool_tokens": LONG, "threads": 1, **options}
    made = LoadOptions(**options)  # type: ignore[arg-type]
    return LoadModel(path=path, name="tiny", options=made, carries_on=carries_on)


def kinds(ear: Ear, request_id: str) -> list[type]:
    return [type(one) for one in ear.of(request_id) if not isinstance(one, TokenDelta)]


WAYS: dict[str, dict[str, object]] = {
    "another pool": {"pool_tokens": 4096},
    "copied": {"test_preempt_copy": True},
    "other seats": {"parallel": 1},
    "parking off": {"preempt_ram_mib": 0},
}


@pytest.mark.parametrize("way", WAYS)
def test_running_requests_go_on_with_the_tokens_of_an_undisturbed_run(
    engine: Engine, model_path: Path, way: str
) -> None:
    load(engine, model_path, pool_tokens=LONG, seed=3)
    requests = [ask(f"r{n}", sampling=SamplingParams(temperature=0.8)) for n in range(3)]
    alone = tokens_alone(engine, requests)
    ear = Ear(engine)
    command_at(engine, 20, again(model_path, **WAYS[way]), of="r1")
    submit_together(engine, requests)
    for request in requests:
        end = ear.wait_end(request.request_id)
        assert isinstance(end, Finished), end
        assert ear.tokens(request.request_id) == alone[request.request_id]
        assert end.usage.completion_tokens == len(alone[request.request_id])
    assert kinds(ear, "r1")[:2] == [Started, Parked]
    parks = [
        one for one in ear.events if isinstance(one, Parked)
    ]  # the others may have ended before
    assert parks[0].reason.cause is ParkCause.RELOAD
    assert_nothing_is_held(engine)


@needs_kernels
def test_they_go_on_on_other_options_of_the_native_kernels(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, cpu_variant="native")
    (alone,) = tokens_alone(engine, [ask("r0")]).values()
    ear = Ear(engine)
    command_at(engine, 20, again(model_path, cpu_variant="native", threads=2), of="r0")
    engine.submit(ask("r0"))
    ear.wait_end("r0")
    assert ear.tokens("r0") == alone


def test_requests_in_every_state_are_carried_and_all_go_on(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, parallel=3)
    requests = [ask(f"r{n}") for n in range(6)]
    alone = tokens_alone(engine, requests)
    ear = Ear(engine)
    command_at_park(engine, again(model_path, pool_tokens=512))
    submit_together(engine, requests)
    for request in requests:
        assert isinstance(ear.wait_end(request.request_id), Finished)
    assert {id_: ear.tokens(id_) for id_ in alone} == alone
    assert_nothing_is_held(engine)


def test_what_was_said_by_hand_still_holds(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = Ear(engine)
    command_at(engine, 10, ParkNow(request_id="r1"), of="r1")
    engine.submit(ask("r1"))
    ear.wait_for(lambda one: isinstance(one, Parked), "the park")
    command_at(
        engine,
        10,
        ParkNow(request_id="r0"),
        ResumeNext(request_id="r1"),
        Pin(request_id="r1"),
        SetPriority(request_id="r1", priority=Priority.BACKGROUND),
        again(model_path),
        of="r0",
    )
    command_at(engine, 11, ParkNow(request_id="r1"), of="r1")
    engine.submit(ask("r0"))
    ear.wait_until(lambda: kinds(ear, "r1")[-2:] == [Restored, Parked], "the return and a park")
    runs = {run.request_id: run for run in settled(engine).runs}
    assert {run.state for run in runs.values()} == {RunState.PARKED}
    assert (runs["r1"].is_pinned, runs["r1"].priority) == (True, Priority.BACKGROUND)
    for request_id in ("r0", "r1"):
        engine.control(ResumeNext(request_id=request_id))
        assert isinstance(ear.wait_end(request_id), Finished)
    assert_nothing_is_held(engine)


def test_times_and_parks_are_counted_over_the_load(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = Ear(engine)
    command_at(engine, 20, again(model_path), of="r0")
    engine.submit(ask("r0"))
    end = ear.wait_end("r0")
    assert isinstance(end, Finished)
    assert (end.usage.num_parks, end.usage.num_recomputes) == (1, 1)
    assert end.usage.parked_s > 0
    assert end.usage.decode_s > 0
    assert end.usage.prefill_s > 0


def test_who_no_longer_fits_is_told_and_the_others_go_on(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    requests = [ask("r0", max_tokens=90), ask("r1", max_tokens=400)]
    ear = Ear(engine)
    command_at(engine, 70, again(model_path, pool_tokens=64), of="r1")
    engine.submit(requests[1])
    end = ear.wait_end("r1")
    assert isinstance(end, Failed)
    assert isinstance(end.error, ContextLengthExceeded)
    assert end.partial
    engine.submit(ask("r0", max_tokens=5))
    assert isinstance(ear.wait_end("r0"), Finished)
    assert_nothing_is_held(engine)


def test_another_model_does_not_go_on_with_it(
    engine: Engine, model_path: Path, tmp_path: Path
) -> None:
    other = write_tiny_gguf(tmp_path, seed=5)
    load(engine, model_path, pool_tokens=LONG)
    ear = Ear(engine)
    command_at(engine, 20, again(other), of="r0")
    engine.submit(ask("r0"))
    end = ear.wait_end("r0")
    assert isinstance(end, Failed)
    assert isinstance(end.error, ModelUnavailable)
    assert_nothing_is_held(engine)


def test_a_model_that_cannot_be_loaded_after_all_ends_them(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise NotEnoughMemory("memory ran out while the model was loaded")

    load(engine, model_path, pool_tokens=LONG)
    ear = Ear(engine)
    command_at(engine, 20, again(model_path), of="r0")
    with monkeypatch.context() as patch:
        patch.setattr(ModelRunner, "load", fail)
        engine.submit(ask("r0"))
        assert isinstance(ear.wait_end("r0"), Failed)
    assert engine.snapshot().runs == ()
    load(engine, model_path, pool_tokens=LONG)
    assert_nothing_is_held(engine)


def test_a_second_load_takes_them_over_from_the_first_and_an_unload_ends_them(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    (alone,) = tokens_alone(engine, [ask("r0")]).values()
    ear = Ear(engine)
    command_at(engine, 20, again(model_path), again(model_path, pool_tokens=4096), of="r0")
    engine.submit(ask("r0"))
    assert isinstance(ear.wait_end("r0"), Finished)
    assert ear.tokens("r0") == alone
    command_at(engine, 20, again(model_path), UnloadModel(), of="r1")
    engine.submit(ask("r1"))
    end = ear.wait_end("r1")
    assert isinstance(end, Failed)
    assert engine.snapshot().runs == ()


def test_who_would_load_only_for_the_idle_does_not_part_them_from_their_model(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    (alone,) = tokens_alone(engine, [ask("r0")]).values()
    ear = Ear(engine)
    command_at(
        engine,
        20,
        again(model_path),
        replace(again(model_path, carries_on=False), only_if_idle=True),
        UnloadModel(only_if_idle=True),
        of="r0",
    )
    engine.submit(ask("r0"))
    assert isinstance(ear.wait_end("r0"), Finished)
    assert ear.tokens("r0") == alone


def test_one_that_is_given_up_meanwhile_ends_as_aborted(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    ear = Ear(engine)

    def give_up(events: tuple[object, ...]) -> None:
        if any(isinstance(one, Parked) for one in events):
            engine.abort("r0")

    stop = engine.subscribe(give_up)
    command_at(engine, 20, again(model_path), of="r0")
    engine.submit(ask("r0"))
    end = ear.wait_end("r0")
    stop()
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.ABORTED
    assert_nothing_is_held(engine)


def test_siblings_end_as_without(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=LONG)
    group = RequestGroup(group_id="g", size=2)
    prompt = ask("one").prompt
    requests = [ask(f"r{n}", group=group, prompt=prompt) for n in range(2)]
    ear = Ear(engine)
    command_at(engine, 20, again(model_path), of="r0")
    submit_together(engine, requests)
    for request in requests:
        end = ear.wait_end(request.request_id)
        assert isinstance(end, Failed)
        assert isinstance(end.error, ModelUnavailable)
    assert_nothing_is_held(engine)


def test_files_of_the_parked_go_when_they_are_back(
    engine: Engine, model_path: Path, tmp_path: Path
) -> None:
    load(engine, model_path, preempt_disk=tmp_path)
    requests = four(is_durable=True)
    alone = tokens_alone(engine, requests)
    ear = Ear(engine)
    command_at_park(engine, again(model_path, pool_tokens=256, preempt_disk=tmp_path))
    submit_together(engine, requests)
    for request in requests:
        assert isinstance(ear.wait_end(request.request_id), Finished)
    assert {id_: ear.tokens(id_) for id_ in alone} == alone
    assert settled_without_files(engine, tmp_path)
    assert inside(engine).disk is not None
    assert_nothing_is_held(engine)


def test_one_that_was_carried_can_be_put_on_disk_later(
    engine: Engine, model_path: Path, tmp_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    request = ask(ID, max_tokens=400, is_durable=True)
    (alone,) = tokens_alone(engine, [request]).values()
    ear = Ear(engine)
    command_at(engine, 40, again(model_path, preempt_disk=tmp_path))
    command_at(engine, 90, UnloadModel())
    engine.submit(request)
    end = ear.wait_end(ID)
    ear.close()
    assert isinstance(end, Failed)
    assert isinstance(end.error, Suspended), "its model went away for good while it ran"
    load(engine, model_path, **options)
    back = run_all(engine, [comeback()])
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone
    assert settled_without_files(engine, tmp_path)
