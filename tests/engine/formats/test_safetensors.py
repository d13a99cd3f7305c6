"""Hugging Face folders: weights come back as written; what is damaged or unsafe is refused by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from engine.errors import CorruptModel, EngineError, ModelNotFound, UnsupportedModel
from engine.formats import safetensors
from engine.formats.base import FileFormat
from engine.formats.safetensors import open_folder
from fakes.tiny_files import (
    CHAT_TEMPLATE,
    EOS_ID,
    UNKNOWN_ID,
    tiny_weights,
    write_safetensors,
    write_tiny_folder,
)

INDEX = "model.safetensors.index.json"
WEIGHTS = "model.safetensors"


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def edit_index(folder: Path, tensor: str, file_name: object) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"][tensor] = file_name
    write_json(folder / INDEX, index)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_folder(tmp_path / "model")


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_tiny_folder(tmp_path / "model", shards=3)


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, model_type="qwen3", seed=2, tied=False)
    checkpoint = open_folder(folder)
    assert checkpoint.format is FileFormat.SAFETENSORS
    assert checkpoint.path == folder
    assert checkpoint.architecture == "qwen3"
    assert checkpoint.metadata["head_dim"] == 32
    assert checkpoint.chat_template == CHAT_TEMPLATE
    assert checkpoint.folder_text is not None
    assert checkpoint.folder_text.tokenizer_json == folder / "tokenizer.json"
    assert checkpoint.folder_text.tokenizer_config["eos_token"] == "<|im_end|>"
    assert checkpoint.folder_text.special_tokens["bos_token"] == "<|im_start|>"
    assert checkpoint.folder_text.generation_config["eos_token_id"] == [EOS_ID, UNKNOWN_ID]
    weights = tiny_weights("qwen3", 2, tied=False)
    assert set(checkpoint.tensors) == set(weights)
    for name, weight in weights.items():
        np.testing.assert_array_equal(checkpoint.read_float32(name), weight)
    checkpoint.close()


@pytest.mark.parametrize(("dtype", "error"), [("F16", 1e-3), ("BF16", 1e-2)])
def test_half_types_are_widened(tmp_path: Path, dtype: str, error: float) -> None:
    checkpoint = open_folder(write_tiny_folder(tmp_path, dtype=dtype))
    for name, weight in tiny_weights().items():
        values = checkpoint.read_float32(name)
        assert checkpoint.tensors[name].storage == dtype
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, weight, rtol=error, atol=1e-6)
    checkpoint.close()


def test_a_sharded_folder_is_read_whole(sharded: Path) -> None:
    checkpoint = open_folder(sharded)
    assert [file.path.name for file in checkpoint.files] == [
        f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)
    ]
    for name, weight in tiny_weights().items():
        np.testing.assert_array_equal(checkpoint.read_float32(name), weight)
    checkpoint.close()


def test_optional_files_may_be_absent(folder: Path) -> None:
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "generation_config.json",
    ):
        (folder / name).unlink()
    checkpoint = open_folder(folder)
    assert checkpoint.chat_template is None
    assert checkpoint.folder_text is not None
    assert checkpoint.folder_text.tokenizer_json is None
    assert checkpoint.folder_text.tokenizer_config == {}
    assert checkpoint.folder_text.generation_config == {}
    checkpoint.close()


def test_a_template_file_goes_before_the_config(folder: Path) -> None:
    write_json(folder / "chat_template.json", {"chat_template": "from json"})
    assert open_folder(folder).chat_template == "from json"
    (folder / "chat_template.jinja").write_text("from jinja ü", encoding="utf-8")
    assert open_folder(folder).chat_template == "from jinja ü"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}], "d"),
        ([{"name": "tool_use", "template": "t"}], None),
        ([{"name": ["default"]}, 7], None),
        (None, None),
    ],
)
def test_of_several_templates_the_default_is_taken(
    folder: Path, value: object, expected: str | None
) -> None:
    write_json(folder / "tokenizer_config.json", {"chat_template": value})
    assert open_folder(folder).chat_template == expected


@pytest.mark.parametrize("value", [7, {"default": "x"}, [{"name": "default", "template": 7}]])
def test_a_template_that_is_no_text_is_refused(folder: Path, value: object) -> None:
    write_json(folder / "tokenizer_config.json", {"chat_template": value})
    with pytest.raises(CorruptModel, match="chat_template must be text"):
        open_folder(folder)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth", "last.ckpt", "a.PKL"]
)
def test_pickled_weights_are_refused(folder: Path, name: str) -> None:
    (folder / WEIGHTS).rename(folder / name)
    with pytest.raises(
        UnsupportedModel,
        match=f"{name}: pickled weights are refused, .*safetensors or GGUF version",
    ):
        open_folder(folder)


def test_pickled_weights_beside_safetensors_are_left_alone(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    open_folder(folder).close()


def test_a_folder_without_weights_says_so(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    with pytest.raises(
        ModelNotFound, match=r"neither model\.safetensors nor model\.safetensors\.index\.json"
    ):
        open_folder(folder)


def test_a_folder_without_config_says_so(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFound, match=r"config\.json is missing"):
        open_folder(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON"),
        (b"{", "is no JSON"),
        (b'{"a": 1} x', "is no JSON"),
        (b"[]", "must hold an object, it holds list"),
        (b"null", "must hold an object"),
        (b'{"a": "\xff"}', "is not UTF-8 at byte 7"),
        (b'{"a": ' + b"[" * 100_000, "is nested too deeply"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "is no JSON"),
        (b"{}", "model_type must name the architecture, it is None"),
        (b'{"model_type": ["llama"]}', "model_type must name the architecture"),
        (b'{"model_type": ""}', "model_type must name the architecture"),
        (b" " * ((1 << 20) + 1), "is larger than the limit of 1048576 bytes"),
    ],
)
def test_a_bad_config_is_refused(folder: Path, content: bytes, message: str) -> None:
    (folder / "config.json").write_bytes(content)
    with pytest.raises(CorruptModel, match=rf"config\.json: .*{message}"):
        open_folder(folder)


def test_a_byte_order_mark_is_passed_over(folder: Path) -> None:
    content = (folder / "config.json").read_bytes()
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + content)
    open_folder(folder).close()


def test_a_huge_tokenizer_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors, "MAX_TOKENIZER_BYTES", 100)
    with pytest.raises(CorruptModel, match=r"tokenizer\.json has \d+ bytes, the limit is 100"):
        open_folder(folder)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/x.safetensors", "sub/x.safetensors",
                                  "..\\x.safetensors", "C:x.safetensors", "x\0.safetensors", "pytorch_model.bin",
                                  "", "config.json", 7, None, ["a.safetensors"]])  # fmt: skip
def test_the_index_cannot_point_elsewhere(sharded: Path, name: object) -> None:
    (sharded.parent / "outside.safetensors").write_bytes(
        (sharded / "model-00001-of-00003.safetensors").read_bytes()
    )
    edit_index(sharded, "model.norm.weight", name)
    with pytest.raises(
        CorruptModel, match=r"index\.json: 'model\.norm\.weight' lies in .*, allowed are names of"
    ):
        open_folder(sharded)


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(
        ModelNotFound, match="1 of 3 weight files are missing, the first is 'model-00002"
    ):
        open_folder(sharded)


def test_a_tensor_that_its_shard_lacks_is_named(sharded: Path) -> None:
    edit_index(sharded, "model.extra.weight", "model-00001-of-00003.safetensors")
    with pytest.raises(
        CorruptModel, match=r"1 tensors are not in model-00001.* the first is 'model\.extra"
    ):
        open_folder(sharded)


@pytest.mark.parametrize(
    "index", [{}, {"weight_map": {}}, {"weight_map": [1]}, {"weight_map": None}]
)
def test_an_index_without_a_map_is_refused(sharded: Path, index: object) -> None:
    write_json(sharded / INDEX, index)
    with pytest.raises(CorruptModel, match="weight_map must map tensors to files"):
        open_folder(sharded)


@pytest.mark.parametrize("dtype", ["F64", "I64", "I32", "U8", "BOOL", "F8_E4M3"])
def test_other_weight_types_are_refused_by_name(folder: Path, dtype: str) -> None:
    size = {"F64": 8, "I64": 8, "I32": 4}.get(dtype, 1)
    write_safetensors(folder / WEIGHTS, {"a.weight": (dtype, (2, 3), bytes(6 * size))})
    with pytest.raises(
        UnsupportedModel, match=rf"tensor 'a\.weight' is stored as {dtype}, weights can be F32"
    ):
        open_folder(folder)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_tensors_without_values_are_refused(folder: Path, shape: tuple[int, ...]) -> None:
    write_safetensors(folder / WEIGHTS, {"a": ("F32", shape, bytes(0 if shape else 4))})
    with pytest.raises(CorruptModel, match="tensor 'a' has no values in its shape"):
        open_folder(folder)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\1",
        b"\xff" * 8,
        struct.pack("<Q", 100) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 2) + b"{}" + b"left over",
        struct.pack("<Q", 4) + b"\xff\xff\xff\xff",
        struct.pack("<Q", 50_000) + b"[" * 50_000,
    ],
)
def test_a_bad_weight_file_is_refused(folder: Path, content: bytes) -> None:
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(CorruptModel, match=r"model\.safetensors: "):
        open_folder(folder)


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 1 << 62]}},
        {"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F32", "shape": [2]}},
        {"a": 7},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
         "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(folder: Path, header: object) -> None:
    text = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(CorruptModel, match=r"model\.safetensors: "):
        open_folder(folder)


def test_every_truncation_of_the_header_is_refused(folder: Path) -> None:
    whole = (folder / WEIGHTS).read_bytes()
    for end in [*range(0, 200), len(whole) - 1]:
        (folder / WEIGHTS).write_bytes(whole[:end])
        with pytest.raises(EngineError):
            open_folder(folder)
