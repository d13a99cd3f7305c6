"""Facts are read once for each state of a file, also over restarts; what cannot be read says why."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import ModelInfo
from engine.errors import CorruptModel
from fakes.fake_engine import TINY_MODEL
from studio.services.model_facts import ModelFactsReader


class Inspector:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, path: Path, name: str) -> ModelInfo:
        self.asked.append(name)
        if "bad" in name:
            raise CorruptModel("the header ends too early")
        return replace(TINY_MODEL, path=path, name=name, license="mit")


def test_each_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    for path in (good, bad):
        path.write_bytes(b"GGUF")
    models = [("good", good), ("bad", bad), ("gone", tmp_path / "gone.gguf")]
    inspector, cache = Inspector(), tmp_path / "cache" / "facts.json"
    reader = ModelFactsReader(inspector, cache)
    facts = reader.read(models)
    assert facts[good].info == replace(TINY_MODEL, path=good, name="good", license="mit")
    assert (facts[bad].info, facts[bad].problem) == (None, "the header ends too early")
    assert set(facts) == {good, bad}
    assert reader.read(models) == facts
    assert ModelFactsReader(inspector, cache).read(models) == facts
    assert inspector.asked == ["good", "bad"]
    os.utime(good, (1, 1))
    reader.read(models)
    assert inspector.asked == ["good", "bad", "good"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 0}', '{"format": 1, "models": {"a": 1}}'])
def test_a_broken_cache_is_read_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "facts.json").write_text(text)
    path = tmp_path / "good.gguf"
    path.write_bytes(b"GGUF")
    reader = ModelFactsReader(Inspector(), tmp_path / "facts.json")
    assert reader.read([("good", path)])[path].info is not None
