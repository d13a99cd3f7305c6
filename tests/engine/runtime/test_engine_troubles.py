"""What breaks, is unloaded or shut down under the engine's requests: each is told once, and the engine lives on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.api import (
    EngineState,
    Failed,
    Finished,
    FinishReason,
    LoadModel,
    LoadOptions,
    ModelChanged,
    SamplingParams,
    TokenDelta,
    UnloadModel,
)
from engine.core.scheduler import Scheduler
from engine.errors import (
    DeviceFailure,
    EngineStopped,
    ModelError,
    ModelUnavailable,
)
from engine.factory import create_engine
from engine.runtime.engine import Engine
from engine.runtime.model_runner import ModelRunner
from engine.runtime.sampler import Sampler
from fakes.engine_asks import ask, assert_pool_is_empty, load
from fakes.listening import Ear, run_all


def test_a_failing_kernel_ends_its_step_and_not_the_engine(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(engine, model_path, pool_tokens=512)
    before = run_all(engine, [ask("before")]).tokens("before")
    execute = ModelRunner.execute
    calls = iter(range(1000))

    def fail_third(self: ModelRunner, rows: object, wishes: object) -> object:
        if next(calls) == 2:
            raise RuntimeError("the device caught fire")
        return execute(self, rows, wishes)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelRunner, "execute", fail_third)
    ear = run_all(engine, [ask("a"), ask("b")])
    failed = [ear.wait_end(i) for i in "ab" if isinstance(ear.wait_end(i), Failed)]
    assert failed
    assert all(isinstance(f.error, DeviceFailure) and "caught fire" in str(f.error) for f in failed)
    assert run_all(engine, [ask("after")]).tokens("after") == before
    assert_pool_is_empty(engine)


def test_a_file_that_is_no_model_is_refused_and_the_next_load_works(
    engine: Engine, model_path: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + b"\xff" * 100)
    ear = Ear(engine)
    engine.control(LoadModel(path=bad, name="bad"))
    failed = ear.wait_for(lambda e: isinstance(e, ModelChanged) and e.state is EngineState.FAILED)
    assert isinstance(failed, ModelChanged)
    assert isinstance(failed.error, ModelError)
    load(engine, model_path, pool_tokens=256)
    assert isinstance(run_all(engine, [ask("a")]).wait_end("a"), Finished)


def test_unloading_tells_everybody_and_frees_the_model(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    ear = Ear(engine)
    for n in range(3):
        engine.submit(ask(f"r{n}", max_tokens=1500))
    ear.wait_for(lambda e: isinstance(e, TokenDelta))
    engine.control(UnloadModel())
    for n in range(3):
        end = ear.wait_end(f"r{n}")
        assert isinstance(end, Failed)
        assert isinstance(end.error, ModelUnavailable)
    ear.wait_for(lambda e: isinstance(e, ModelChanged) and e.state is EngineState.NO_MODEL)
    assert engine.snapshot().state is EngineState.NO_MODEL


def test_requests_sent_while_loading_are_served_and_can_be_aborted(
    engine: Engine, model_path: Path
) -> None:
    ear = Ear(engine)
    engine.control(LoadModel(path=model_path, name="tiny", options=LoadOptions(pool_tokens=512)))
    engine.submit(ask("early"))
    engine.submit(ask("regretted"))
    engine.abort("regretted")
    assert isinstance(ear.wait_end("early"), Finished)
    end = ear.wait_end("regretted")
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.ABORTED


def test_shutdown_ends_every_request_and_later_ones_are_told(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=2048)
    ear = Ear(engine)
    engine.submit(ask("a", max_tokens=1500))
    ear.wait_for(lambda e: isinstance(e, TokenDelta))
    engine.shutdown()
    engine.submit(ask("late"))
    for request_id in ("a", "late"):
        end = ear.wait_end(request_id)
        assert isinstance(end, Failed)
        assert isinstance(end.error, EngineStopped)


def test_submit_abort_and_shutdown_from_many_threads_give_one_end_each(model_path: Path) -> None:
    engine = create_engine()
    load(engine, model_path, pool_tokens=1024)  # type: ignore[arg-type]
    ear = Ear(engine)
    ids = [f"t{thread}r{n}" for thread in range(4) for n in range(10)]

    def work(thread: int) -> None:
        for n in range(10):
            engine.submit(ask(f"t{thread}r{n}", max_tokens=3))
            if n % 3 == 0:
                engine.abort(f"t{thread}r{n}")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    ear.wait_end("t2r3")
    engine.shutdown()
    for thread in threads:
        thread.join()
    for request_id in ids:
        ear.wait_end(request_id)
    ends = [e.request_id for e in ear.events if isinstance(e, Finished | Failed)]
    assert sorted(ends) == sorted(ids)


def test_a_row_that_breaks_the_sampler_ends_alone(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(engine, model_path, pool_tokens=512)
    before = run_all(engine, [ask("before")]).tokens("before")
    sample = Sampler.sample

    def sample_or_break(self: Sampler, *args: object, **fields: object) -> object:
        if self._params.temperature > 0:
            raise ZeroDivisionError("nobody foresaw this")
        return sample(self, *args, **fields)  # type: ignore[arg-type]

    monkeypatch.setattr(Sampler, "sample", sample_or_break)
    ear = run_all(engine, [ask("warm", sampling=SamplingParams()), ask("cold")])
    end = ear.wait_end("warm")
    assert isinstance(end, Failed)
    assert "nobody foresaw this" in str(end.error)
    assert ear.tokens("cold") == before
    assert_pool_is_empty(engine)


def test_what_nobody_foresaw_ends_every_request_and_the_next_model_serves(
    engine: Engine,
    model_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    load(engine, model_path, pool_tokens=512)
    before = run_all(engine, [ask("before")]).tokens("before")
    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, "update", lambda *_: 1 // 0)
        ear = run_all(engine, [ask("a"), ask("b")])
    for request_id in "ab":
        end = ear.wait_end(request_id)
        assert isinstance(end, Failed)
    assert engine.snapshot().state is EngineState.FAILED
    assert "broke down" in caplog.text
    load(engine, model_path, pool_tokens=512)
    assert run_all(engine, [ask("after")]).tokens("after") == before
