"""Files say which of a text's states becomes its embedding, or that the model writes text."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import CorruptModel
from engine.formats.base import FileFormat, FolderText
from engine.formats.checkpoint import inspect_model, open_checkpoint
from engine.formats.pooling import Pooling, read_pooling
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from fakes.tiny_text import StandIn

GGUF = {0: "none", 1: "mean", 2: "cls", 3: "last", 4: "other", 77: "other", "mean": "other"}
FOLDER: list[tuple[dict[str, object], str]] = [
    ({}, "none"),
    ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
    ({"pooling_mode_cls_token": True}, "cls"),
    ({"pooling_mode_lasttoken": True, "include_prompt": True}, "last"),
    ({"pooling_mode_max_tokens": True}, "other"),
    ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "other"),
    ({"pooling_mode": "lasttoken"}, "last"),
    ({"pooling_mode": "weightedmean"}, "other"),
    ({"word_embedding_dimension": 64}, "other"),
]


@pytest.mark.parametrize(("value", "expected"), GGUF.items())
def test_a_gguf_file_says_it_by_number(value: object, expected: str) -> None:
    checkpoint = StandIn({"llama.pooling_type": value})
    assert read_pooling(checkpoint) is Pooling(expected)  # type: ignore[arg-type]


def test_a_gguf_file_that_says_nothing_writes_text() -> None:
    assert read_pooling(StandIn({})) is Pooling.NONE  # type: ignore[arg-type]


@pytest.mark.parametrize(("config", "expected"), FOLDER)
def test_a_folder_says_it_in_its_pooling_module(config: dict[str, object], expected: str) -> None:
    text = FolderText(None, {}, {}, {}, config)
    checkpoint = StandIn({}, format=FileFormat.SAFETENSORS, folder_text=text)
    assert read_pooling(checkpoint) is Pooling(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        (("Transformer", "Pooling", "Normalize"), "mean"),
        (("Transformer", "Pooling"), "mean"),
        (("Transformer", "Pooling", "Dense", "Normalize"), "other"),
    ],
)
def test_a_layer_behind_the_pooling_means_another_vector(
    modules: tuple[str, ...], expected: str
) -> None:
    text = FolderText(None, {}, {}, {}, {"pooling_mode_mean_tokens": True}, modules)
    checkpoint = StandIn({}, format=FileFormat.SAFETENSORS, folder_text=text)
    assert read_pooling(checkpoint) is Pooling(expected)  # type: ignore[arg-type]


def test_modules_are_read_from_the_folder(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, pooling_mode="mean_tokens")
    listed = [{"type": f"sentence_transformers.models.{name}"} for name in ("Pooling", "Dense")]
    (folder / "modules.json").write_text(json.dumps(listed))
    with closing(open_checkpoint(folder)) as checkpoint:
        assert checkpoint.folder_text is not None
        assert checkpoint.folder_text.modules == ("Pooling", "Dense")
    for wrong in ("{}", "[1]", '[{"type": 5}]', "[{}]"):
        (folder / "modules.json").write_text(wrong)
        with pytest.raises(CorruptModel, match=r"modules\.json"):
            open_checkpoint(folder)


def test_the_facts_of_a_model_have_the_size_of_its_embeddings(tmp_path: Path) -> None:
    import gguf

    embeds = write_tiny_gguf(tmp_path / "a", pooling=gguf.PoolingType.MEAN)
    folder = write_tiny_folder(tmp_path / "b", pooling_mode="lasttoken")
    writes = write_tiny_gguf(tmp_path / "c")
    sizes = [inspect_model(path, "tiny").embedding_size for path in (embeds, folder, writes)]
    assert sizes == [64, 64, 0]
