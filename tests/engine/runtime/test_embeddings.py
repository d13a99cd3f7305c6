"""An embedding is a function of its text alone, bit for bit: alone, beside others, parked, in any chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers

from engine.api import (
    Embedded,
    Failed,
    Finished,
    Origin,
    Parked,
    Request,
    Restored,
    Started,
    Text,
    TokenDelta,
    TokenIds,
    Wanted,
)
from engine.errors import ContextLengthExceeded, InvalidRequest
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import assert_nothing_is_held, inside, load, park_while_read
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf

POOLINGS = {
    "mean": gguf.PoolingType.MEAN,
    "cls": gguf.PoolingType.CLS,
    "last": gguf.PoolingType.LAST,
}
MODES = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}


def ids_of(seed: int, count: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(3, 270, count).tolist())


TEXTS = [ids_of(seed, count) for seed, count in enumerate((1, 33, 120, 200, 97, 64))]


def embed(name: str, ids: tuple[int, ...]) -> Request:
    prompt = TokenIds(ids=ids)
    return Request(request_id=name, origin=Origin.API, prompt=prompt, wants=Wanted.EMBEDDING)


def vectors_of(ear: Ear, names: Iterable[str]) -> dict[str, tuple[float, ...]]:
    found = {}
    for name in names:
        assert isinstance(ear.of(name)[-1], Finished), ear.of(name)
        (told,) = (event for event in ear.of(name) if isinstance(event, Embedded))
        assert not any(isinstance(event, TokenDelta) for event in ear.of(name))
        found[name] = told.values
    return found


def alone(engine: Engine) -> dict[str, tuple[float, ...]]:
    found: dict[str, tuple[float, ...]] = {}
    for n, ids in enumerate(TEXTS):
        found |= vectors_of(run_all(engine, [embed(f"t{n}", ids)]), [f"t{n}"])
    return found


@pytest.mark.parametrize("pooling", POOLINGS)
def test_alone_in_a_batch_and_parked_it_is_the_same_to_the_bit(
    engine: Engine, tmp_path: Path, pooling: str
) -> None:
    path = write_tiny_gguf(tmp_path, pooling=POOLINGS[pooling])
    load(engine, path, pool_tokens=2048)
    expected = alone(engine)
    for values in expected.values():
        assert math.isclose(math.fsum(v * v for v in values), 1.0, abs_tol=1e-6)
        assert all(float(np.float32(value)) == value for value in values)
    requests = [embed(f"t{n}", ids) for n, ids in enumerate(TEXTS)]
    ways: list[dict[str, object]] = [
        {"pool_tokens": 2048, "batch_tokens": 16},
        {"pool_tokens": 256, "batch_tokens": 48},
        {"pool_tokens": 256, "batch_tokens": 48, "test_preempt_copy": True},
        {"pool_tokens": 256, "batch_tokens": 48, "test_preempt_fail_save": 1},
        {"pool_tokens": 2048, "cpu_variant": "torch"},
    ]
    for way in ways[:4]:
        load(engine, path, **way)
        names = [request.request_id for request in requests]
        assert vectors_of(run_all(engine, requests), names) == expected, way
        assert vectors_of(run_all(engine, requests[::-1]), names) == expected, way
    load(engine, path, **ways[4])
    for name, values in alone(engine).items():
        assert np.allclose(values, expected[name], atol=2e-3), "torch is near it"


@pytest.mark.parametrize("pooling", POOLINGS)
def test_parked_while_it_is_being_read_it_goes_on_where_it_was(
    engine: Engine, tmp_path: Path, pooling: str
) -> None:
    path = write_tiny_gguf(tmp_path, pooling=POOLINGS[pooling])
    load(engine, path, pool_tokens=2048)
    expected = vectors_of(run_all(engine, [embed("t", TEXTS[3])]), ["t"])["t"]
    for copies in (False, True):
        load(engine, path, pool_tokens=2048, batch_tokens=16, test_preempt_copy=copies)
        ear = Ear(engine)
        parked_after = park_while_read(engine, "t")
        engine.submit(embed("t", TEXTS[3]))
        ear.wait_end("t")
        parked_after()
        assert vectors_of(ear, ["t"])["t"] == expected
        assert [type(e) for e in ear.of("t") if isinstance(e, Parked | Restored)] == [
            Parked,
            Restored,
        ]
        ear.close()


def test_shared_beginnings_change_nothing(engine: Engine, tmp_path: Path) -> None:
    """A prefix that is found saves reading only where the last token alone counts."""
    for pooling, finds in (("mean", False), ("cls", False), ("last", True)):
        load(
            engine, write_tiny_gguf(tmp_path / pooling, pooling=POOLINGS[pooling]), pool_tokens=2048
        )
        first = vectors_of(run_all(engine, [embed("a", TEXTS[3])]), ["a"])["a"]
        again = run_all(engine, [embed("a", TEXTS[3])])
        (started,) = (event for event in again.of("a") if isinstance(event, Started))
        assert bool(started.cached_tokens) == finds or pooling == "cls"
        assert vectors_of(again, ["a"])["a"] == first


@pytest.mark.parametrize("pooling", MODES)
def test_it_is_what_transformers_computes(engine: Engine, tmp_path: Path, pooling: str) -> None:
    folder = write_tiny_folder(tmp_path, model_type="qwen3", pooling_mode=MODES[pooling])
    load(engine, folder, pool_tokens=2048)
    got = vectors_of(run_all(engine, [embed("a", TEXTS[2])]), ["a"])["a"]
    with torch.inference_mode():
        model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32)
        states = model(torch.tensor([TEXTS[2]])).last_hidden_state[0].double()
    pooled = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}[pooling]
    expected = (pooled / pooled.norm()).numpy()
    assert np.allclose(got, expected, atol=5e-3)
    assert float(np.dot(got, expected)) > 0.9999


def test_a_whole_window_fits_and_one_more_token_is_told_with_the_figures(
    engine: Engine, tmp_path: Path
) -> None:
    load(engine, write_tiny_gguf(tmp_path, pooling=POOLINGS["mean"]), pool_tokens=2048)
    window = engine.snapshot().window_tokens
    vectors_of(run_all(engine, [embed("a", ids_of(1, window))]), ["a"])
    (failed,) = run_all(engine, [embed("b", ids_of(1, window + 1))]).of("b")
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ContextLengthExceeded)
    assert (failed.error.prompt_tokens, failed.error.limit_tokens) == (window + 1, window)


def test_each_kind_of_model_refuses_by_name_what_it_cannot_give(
    engine: Engine, tmp_path: Path
) -> None:
    writes = Request(request_id="a", origin=Origin.API, prompt=Text(text="hello"), max_tokens=3)
    load(engine, write_tiny_gguf(tmp_path / "a", pooling=POOLINGS["mean"]))
    (failed,) = run_all(engine, [writes]).of("a")
    assert isinstance(failed, Failed)
    assert "writes no text; use /v1/embeddings" in str(failed.error)
    load(engine, write_tiny_gguf(tmp_path / "b"))
    (failed,) = run_all(engine, [embed("b", TEXTS[1])]).of("b")
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, InvalidRequest)
    assert failed.error.param == "model"
    assert "gives no embeddings" in str(failed.error)
    assert_nothing_is_held(engine)


def test_the_snapshot_knows_the_size_of_the_embeddings(engine: Engine, tmp_path: Path) -> None:
    load(engine, write_tiny_gguf(tmp_path, pooling=POOLINGS["last"], tied=False))
    model = engine.snapshot().model
    assert model is not None
    assert model.embedding_size == inside(engine).runner.spec.hidden == 64
