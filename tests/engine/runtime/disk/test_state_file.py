"""Saved states as files: what is written is read back, and whatever else a file holds is refused and harms nothing."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from engine.api import SamplingParams
from engine.runtime.disk.saved_state import SavedState, StateBroken, metadata_of, read_metadata
from engine.runtime.disk.state_file import MAX_HEADER_BYTES, read_state, write_state
from fakes.saved_states import some_pages, state


def written(path: Path, saved: SavedState, pages: np.ndarray) -> bytes:
    with path.open("wb") as file:
        assert write_state(file, saved, list(pages), lambda: True)
    return path.read_bytes()


@pytest.mark.parametrize(
    "saved",
    [
        state(),
        state(num_pages=0),
        state(num_prompt=40, reply_ids=()),
        state(num_prompt=60, num_discarded=30, reply_ids=tuple(range(10))),
        state(max_tokens=7, stop=(), sampling=SamplingParams(logprobs=3)),
    ],
    ids=["whole", "tokens only", "nothing said yet", "shifted", "other values"],
)
def test_what_is_written_is_read_back(tmp_path: Path, saved: SavedState) -> None:
    path = tmp_path / "state"
    pages = some_pages(saved.num_pages)
    written(path, saved, pages)
    recalled = read_state(path)
    assert recalled.state == saved
    assert np.array_equal(recalled.pages, pages)


def test_other_programs_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    written(path, state(), some_pages())
    tensors = load_file(path)
    assert tensors["tokens"].tolist() == list(range(40))
    assert np.array_equal(tensors["pages"], some_pages())


def test_a_state_that_nobody_wants_any_more_is_left_half_written() -> None:
    answers = iter([True, True, False])
    file = io.BytesIO()
    assert not write_state(file, state(), list(some_pages()), lambda: next(answers))


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    whole = written(path, state(), some_pages())
    dice = random.Random(1)
    for _ in range(600):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        with pytest.raises(StateBroken):
            read_state(path)
    for length in {
        0,
        1,
        7,
        8,
        9,
        len(whole) - 1,
        *(dice.randrange(len(whole)) for _ in range(100)),
    }:
        path.write_bytes(whole[:length])
        with pytest.raises(StateBroken):
            read_state(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(StateBroken):
        read_state(path)


def test_hostile_headers_are_refused_without_taking_memory(tmp_path: Path) -> None:
    path = tmp_path / "state"
    good = json.loads(metadata_of(state()))
    hostile: list[object] = [
        None, [], {}, "x" * 1000, {**good, "token_ids": 1 << 60}, {**good, "num_pages": 1 << 40},
        {**good, "page_bytes": -1}, {**good, "num_prompt": True}, {**good, "seed": 1 << 70},
        {**good, "sampling": {"temperature": "hot"}}, {**good, "sampling": {"nobody": 1}},
        {**good, "stop": ["", "a"]}, {**good, "stop": [1]}, {**good, "parked_s": float("nan")},
        {**good, "extra": 1}, {**good, "token_ids": 40.0}, {**good, "max_tokens": -1},
        {**good, "reply_ids": None}, {**good, "request_id": 5},
    ]  # fmt: skip
    for value in hostile:
        metadata = {"format": "layby-parked-1", "sha256": "0" * 64, "state": json.dumps(value)}
        write_header(path, json.dumps({"__metadata__": metadata}).encode())
        with pytest.raises(StateBroken):
            read_state(path)
    for text in (b"", b"null", b"[" * 100_000, b"\xff\xfe", b'{"__metadata__": 4}'):
        write_header(path, text)
        with pytest.raises(StateBroken):
            read_state(path)
    path.write_bytes((MAX_HEADER_BYTES + 1).to_bytes(8, "little"))
    with pytest.raises(StateBroken, match="limit"):
        read_state(path)


def write_header(path: Path, text: bytes) -> None:
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 64)


def test_random_values_in_the_description_never_pass_as_something_else() -> None:
    good = json.loads(metadata_of(state()))
    dice = random.Random(2)
    values: list[object] = [None, -1, 1 << 80, 0.5, "", "x", [], [[]], {}, True, float("inf")]
    for _ in range(2000):
        changed = {**good, dice.choice(list(good)): dice.choice(values)}
        try:
            found = read_metadata(json.dumps(changed))
        except StateBroken:
            continue
        assert found.num_page_bytes >= 0
        assert found.num_tokens >= 0


def test_tokens_that_contradict_each_other_are_no_state() -> None:
    with pytest.raises(StateBroken, match="less"):
        state(num_prompt=31)
    with pytest.raises(StateBroken, match="end of the tokens"):
        state(reply_ids=(1,) * 10)
    with pytest.raises(StateBroken):
        replace(state(), token_ids=(), reply_ids=(), num_prompt=0)
