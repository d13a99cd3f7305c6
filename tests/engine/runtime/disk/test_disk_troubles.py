"""The real engine and states on disk that cannot be used or written: a clear word, and nothing else is harmed."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.api import (
    DiskTrouble,
    Failed,
    Finished,
    KvType,
    Parked,
    Restored,
    SamplingParams,
    UnloadModel,
)
from engine.errors import ParkDiskFailed, ResumeRefused
from engine.factory import create_engine
from engine.runs import ResumeNext
from engine.runtime.disk.saved_state import SavedState
from engine.runtime.disk.state_file import read_state, write_state
from engine.runtime.disk.state_folder import SUFFIX, StateFolder
from engine.runtime.engine import Engine
from fakes.disk_rig import (
    ID,
    LONG,
    PARKED_AT,
    REPLY_TOKENS,
    comeback,
    durable,
    files,
    park,
    refusal_of,
    resumed,
    settled_without_files,
    wait_on_disk,
)
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, load, tokens_alone
from fakes.tiny_files import write_tiny_gguf


def test_another_model_is_refused_by_name_and_the_state_waits_for_its_own(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    folder = tmp_path / "parked"
    options = {"pool_tokens": LONG, "preempt_disk": folder}
    load(engine, model_path, **options)
    (alone,) = tokens_alone(engine, [durable()]).values()
    park(engine, durable())
    wait_on_disk(engine, folder)
    other = write_tiny_gguf(tmp_path / "other", seed=8)
    load(engine, other, **options)
    end = run_all(engine, [comeback()]).wait_end(ID)
    assert isinstance(end, Failed)
    assert isinstance(end.error, ResumeRefused)
    assert "parked on tiny (SHA-256" in str(end.error)
    assert not end.partial
    load(engine, model_path, **options)
    back = run_all(engine, [comeback()])
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone


def test_pages_of_another_back_end_are_not_used_and_the_tokens_are_the_same(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    (alone,) = tokens_alone(engine, [durable()]).values()
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    saved = read_state(tmp_path / f"{ID}{SUFFIX}")
    assert saved.state.num_pages >= 2
    strange = replace(saved.state, compute="another back end")
    with (tmp_path / f"{ID}{SUFFIX}").open("wb") as file:
        write_state(file, strange, list(saved.pages ^ 0x5A), lambda: True)
    load(engine, model_path, **options)
    back = run_all(engine, [comeback()])
    (event,) = (one for one in back.events if isinstance(one, Restored))
    assert event.recomputed_tokens > PARKED_AT
    assert [*resumed(back).token_ids, *back.tokens(ID)] == alone


@pytest.mark.parametrize("variant", ["native", "torch"])
def test_keys_and_values_stored_in_another_way_are_computed_again_and_the_text_is_kept(
    engine: Engine, tmp_path: Path, model_path: Path, variant: str
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path, "cpu_variant": variant}
    load(engine, model_path, **options)
    before = park(engine, durable())
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, kv_type=KvType.Q8_0, **options)
    back = run_all(engine, [comeback()])
    (event,) = (one for one in back.events if isinstance(one, Restored))
    assert event.recomputed_tokens > PARKED_AT
    assert list(resumed(back).token_ids) == before.tokens(ID)
    end = back.wait_end(ID)
    assert isinstance(end, Finished), end
    assert end.usage.completion_tokens == REPLY_TOKENS


def test_a_state_that_comes_back_before_it_is_written_is_dropped(
    engine: Engine, tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, write = threading.Event(), StateFolder.write

    def slow_write(folder: StateFolder, state: SavedState, pages: Any, is_wanted: Any) -> Any:
        half = write(folder, state, pages, lambda: True)
        assert may_end.wait(60)
        return half

    monkeypatch.setattr(StateFolder, "write", slow_write)
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    park(engine, durable())
    ear = Ear(engine)
    engine.control(ResumeNext(request_id=ID))
    ear.wait_for(lambda event: isinstance(event, Restored))
    may_end.set()
    ear.wait_end(ID)
    assert settled_without_files(engine, tmp_path)
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    assert engine.snapshot().saved_ids == ()


def test_a_full_disk_is_told_once_and_parking_goes_on(
    engine: Engine,
    tmp_path: Path,
    model_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    load(engine, model_path, preempt_disk=tmp_path)
    monkeypatch.setattr(StateFolder, "write", full)
    ear = run_all(engine, [ask(f"r{n}", is_durable=True) for n in range(4)])
    assert all(isinstance(ear.wait_end(f"r{n}"), Finished) for n in range(4))
    assert sum(isinstance(event, Parked) for event in ear.events) > 1
    (trouble,) = (event for event in ear.events if isinstance(event, DiskTrouble))
    assert "No space left" in str(trouble.error)
    assert caplog.messages.count(str(trouble.error)) == 1


def test_a_folder_that_cannot_be_used_is_told_and_the_model_is_ready(
    engine: Engine, tmp_path: Path, model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = tmp_path / "a file"
    wrong.write_text("not a folder")
    ear = Ear(engine)
    load(engine, model_path, preempt_disk=wrong)
    trouble = ear.wait_for(lambda event: isinstance(event, DiskTrouble))
    assert isinstance(trouble, DiskTrouble)
    assert isinstance(trouble.error, ParkDiskFailed)
    assert str(trouble.error) in caplog.messages
    assert isinstance(run_all(engine, [durable()]).wait_end(ID), Finished)


def test_one_folder_serves_one_engine(
    engine: Engine, tmp_path: Path, model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(engine, model_path, preempt_disk=tmp_path)
    second = create_engine()
    ear = Ear(second)
    load(second, model_path, preempt_disk=tmp_path)
    trouble = ear.wait_for(lambda event: isinstance(event, DiskTrouble))
    assert "another Layby" in str(trouble.error)  # type: ignore[attr-defined]
    assert "another Layby" in caplog.text
    second.shutdown()


def test_there_is_nothing_to_go_on_with(engine: Engine, tmp_path: Path, model_path: Path) -> None:
    for options in ({}, {"preempt_disk": tmp_path}):
        load(engine, model_path, **options)
        end = run_all(engine, [comeback()]).wait_end(ID)
        assert isinstance(end, Failed)
        assert isinstance(end.error, ResumeRefused)
        assert "no saved state" in str(end.error)


def test_a_smaller_window_is_a_clear_error_and_the_state_stays(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=LONG, preempt_disk=tmp_path)
    park(engine, durable(), at_token=120)
    wait_on_disk(engine, tmp_path)
    load(engine, model_path, pool_tokens=64, preempt_disk=tmp_path)
    end = run_all(engine, [comeback()]).wait_end(ID)
    assert isinstance(end, Failed)
    assert "larger context" in str(end.error)
    assert files(tmp_path) == [f"{ID}{SUFFIX}"]


def test_damaged_and_hostile_files_are_refused_and_harm_nobody(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    other = ask("other", sampling=SamplingParams(temperature=0.0))
    (alone,) = tokens_alone(engine, [other]).values()
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    engine.control(UnloadModel())
    path = tmp_path / f"{ID}{SUFFIX}"
    whole, good = path.read_bytes(), read_state(path)
    load(engine, model_path, **options)

    def hostile(pages: Any, **fields: object) -> bytes:
        with path.open("wb") as file:
            write_state(file, replace(good.state, **fields), list(pages), lambda: True)
        return path.read_bytes()

    ids = good.state.token_ids
    infinite = good.pages.copy()
    infinite[0, :2] = (0x00, 0x7C)  # an infinity in half precision
    beyond = {"token_ids": (*ids[:-1], 1 << 30), "reply_ids": (*good.state.reply_ids[:-1], 1 << 30)}
    cases = {
        "damaged": [whole[:-1], whole[: len(whole) // 2], b"", b"\xff" * 5000],
        "damaged (": [hostile(good.pages, request_id="chat-1-3"), hostile(infinite)],
        "outside the vocabulary": [hostile(good.pages, **beyond)],
        "no saved state": [None],
    }
    for words, contents in cases.items():
        for content in contents:
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
            assert words in refusal_of(engine)
    assert run_all(engine, [other]).tokens("other") == alone
    assert_nothing_is_held(engine)


def test_more_pages_than_tokens_are_refused(
    engine: Engine, tmp_path: Path, model_path: Path
) -> None:
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path}
    load(engine, model_path, **options)
    park(engine, durable())
    wait_on_disk(engine, tmp_path)
    engine.control(UnloadModel())
    load(engine, model_path, **options)
    path = tmp_path / f"{ID}{SUFFIX}"
    good = read_state(path)
    pages = [*good.pages, *good.pages, *good.pages]
    with path.open("wb") as file:
        write_state(file, replace(good.state, num_pages=len(pages)), pages, lambda: True)
    assert "full pages" in refusal_of(engine)
    assert_nothing_is_held(engine)
