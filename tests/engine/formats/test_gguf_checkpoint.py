"""GGUF models as a whole: weights come back as written, split models as one, or with one error."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.errors import CorruptModel, ModelNotFound, NotEnoughMemory, UnsupportedModel
from engine.formats import base
from engine.formats.base import FileFormat
from engine.formats.gguf_checkpoint import open_gguf
from fakes.gguf_bytes import STRING, U8, U16, RawGguf, RawKey, number, text
from fakes.tiny_files import (
    CHAT_TEMPLATE,
    gguf_tensor_name,
    tiny_vocabulary,
    tiny_weights,
    write_tiny_gguf,
)


def edit_key(path: Path, name: str, kind: int, value: bytes) -> None:
    """Change one metadata entry of a file."""
    raw = RawGguf.parse(path.read_bytes())
    key = raw.key(name)
    key.kind, key.value = kind, value
    path.write_bytes(raw.build())


def drop_key(path: Path, name: str) -> None:
    raw = RawGguf.parse(path.read_bytes())
    raw.keys.remove(raw.key(name))
    path.write_bytes(raw.build())


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """The three files of a split model."""
    write_tiny_gguf(tmp_path, storage="Q8_0", tensors_per_shard=8)
    return sorted(tmp_path.iterdir())


def test_a_model_is_read_whole(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, architecture="qwen2", tied=False, seed=3)
    checkpoint = open_gguf(path)
    assert checkpoint.format is FileFormat.GGUF
    assert checkpoint.path == path
    assert checkpoint.architecture == "qwen2"
    assert checkpoint.chat_template == CHAT_TEMPLATE
    assert checkpoint.folder_text is None
    assert checkpoint.metadata["qwen2.block_count"] == 2
    assert list(checkpoint.metadata["tokenizer.ggml.tokens"]) == tiny_vocabulary()[0]  # type: ignore[call-overload]
    weights = tiny_weights("qwen2", 3, tied=False)
    assert set(checkpoint.tensors) == {gguf_tensor_name(name) for name in weights}
    for name, weight in weights.items():
        values = checkpoint.read_float32(gguf_tensor_name(name))
        assert checkpoint.tensors[gguf_tensor_name(name)].shape == weight.shape
        np.testing.assert_array_equal(values, weight)
    checkpoint.close()


@pytest.mark.parametrize("storage", ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_matrices_are_dequantised(tmp_path: Path, storage: str) -> None:
    checkpoint = open_gguf(write_tiny_gguf(tmp_path, architecture="qwen3", storage=storage))
    weight = tiny_weights("qwen3", 0)["model.layers.1.mlp.down_proj.weight"]
    kind = gguf.GGMLQuantizationType[storage]

    values = checkpoint.read_float32("blk.1.ffn_down.weight")

    assert checkpoint.tensors["blk.1.ffn_down.weight"].storage == storage
    np.testing.assert_array_equal(values, gguf.dequantize(gguf.quantize(weight, kind), kind))
    assert values.flags.c_contiguous
    assert values.flags.writeable
    checkpoint.close()


def test_arrays_outlive_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = open_gguf(write_tiny_gguf(tmp_path))
    values = checkpoint.read_float32("output_norm.weight")
    tokens = checkpoint.metadata["tokenizer.ggml.tokens"]
    checkpoint.close()
    checkpoint.close()
    np.testing.assert_array_equal(values, tiny_weights()["model.norm.weight"])
    assert list(tokens) == tiny_vocabulary()[0]  # type: ignore[call-overload]


def test_an_unknown_tensor_is_a_key_error(tmp_path: Path) -> None:
    checkpoint = open_gguf(write_tiny_gguf(tmp_path))
    with pytest.raises(KeyError):
        checkpoint.read_float32("no.such.weight")
    checkpoint.close()


def test_a_file_that_shrinks_while_open_gives_an_error_not_a_crash(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    checkpoint = open_gguf(path)
    with path.open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(CorruptModel, match="now has 5000"):
        checkpoint.read_float32("output_norm.weight")
    checkpoint.close()


def test_memory_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr(base, "dequantize", no_memory)
    checkpoint = open_gguf(write_tiny_gguf(tmp_path))
    with pytest.raises(NotEnoughMemory, match=r"tensor 'output_norm\.weight' needs 256 bytes"):
        checkpoint.read_float32("output_norm.weight")
    checkpoint.close()


def test_the_architecture_must_be_named(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    edit_key(path, "general.architecture", U8, b"\1")
    with pytest.raises(CorruptModel, match=r"general\.architecture must be a string, it is 1"):
        open_gguf(path)
    drop_key(path, "general.architecture")
    with pytest.raises(CorruptModel, match=r"general\.architecture is missing"):
        open_gguf(path)


@pytest.mark.parametrize("name", ["", "lla\0ma", "../llama", "l" * 65, "läma", "a b"])
def test_the_architecture_is_a_plain_name(tmp_path: Path, name: str) -> None:
    path = write_tiny_gguf(tmp_path)
    edit_key(path, "general.architecture", STRING, text(name))
    with pytest.raises(CorruptModel, match="architecture is"):
        open_gguf(path)


def test_a_chat_template_must_be_text(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    edit_key(path, "tokenizer.chat_template", U8, b"\1")
    with pytest.raises(CorruptModel, match=r"tokenizer\.chat_template must be a string"):
        open_gguf(path)


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_file_of_a_split_model_opens_all(shards: list[Path], given: int) -> None:
    checkpoint = open_gguf(shards[given])
    assert checkpoint.path == shards[0]
    assert [file.path for file in checkpoint.files] == shards
    assert checkpoint.metadata["llama.block_count"] == 2
    assert set(checkpoint.tensors) == {gguf_tensor_name(name) for name in tiny_weights()}
    np.testing.assert_array_equal(
        checkpoint.read_float32("output_norm.weight"), tiny_weights()["model.norm.weight"]
    )
    checkpoint.close()


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_missing_shard_is_named(shards: list[Path], gone: int) -> None:
    shards[gone].unlink()
    with pytest.raises(
        ModelNotFound, match=f"1 of 3 files are missing beside it, the first is {shards[gone].name}"
    ):
        open_gguf(shards[gone - 1])


def test_a_shard_under_another_name_is_refused(shards: list[Path]) -> None:
    other = shards[1].rename(shards[1].with_name("part-two.gguf"))
    with pytest.raises(
        CorruptModel, match=r"is one of 3 files \(split\.count\), its name does not say so"
    ):
        open_gguf(other)


def test_shards_in_the_wrong_order_are_refused(shards: list[Path]) -> None:
    second = shards[1].read_bytes()
    shards[1].write_bytes(shards[2].read_bytes())
    shards[2].write_bytes(second)
    with pytest.raises(CorruptModel, match=r"split\.no is 2, beside the other files it must be 1"):
        open_gguf(shards[0])


@pytest.mark.parametrize(
    ("key", "value"), [("split.no", 1), ("split.count", 2), ("split.tensors.count", 19)]
)
def test_contradictory_split_keys_are_refused(shards: list[Path], key: str, value: int) -> None:
    edit_key(shards[2], key, U16, number(U16, value))
    with pytest.raises(CorruptModel, match=f"{key} is {value}, beside the other files it must be"):
        open_gguf(shards[0])


def test_split_keys_of_other_types_are_refused(shards: list[Path]) -> None:
    edit_key(shards[0], "split.count", STRING, text("3"))
    with pytest.raises(CorruptModel, match=r"split\.count must be an integer, it is '3'"):
        open_gguf(shards[0])


def test_a_shard_of_another_model_is_refused(shards: list[Path], tmp_path: Path) -> None:
    shards[1].write_bytes(write_tiny_gguf(tmp_path / "other").read_bytes())
    with pytest.raises(
        CorruptModel, match=r"split\.tensors\.count is 20, beside the other files it must be 32"
    ):
        open_gguf(shards[0])


def test_a_tensor_in_two_shards_is_refused(shards: list[Path]) -> None:
    raw, other = (RawGguf.parse(shard.read_bytes()) for shard in (shards[1], shards[0]))
    raw.tensors[0].name = other.tensors[0].name
    shards[1].write_bytes(raw.build())
    with pytest.raises(CorruptModel, match=r"tensor 'token_embd\.weight' is in another file too"):
        open_gguf(shards[0])


def test_an_unreadable_tensor_in_any_shard_is_refused(shards: list[Path]) -> None:
    raw = RawGguf.parse(shards[2].read_bytes())
    raw.tensors[0].kind = 16
    shards[2].write_bytes(raw.build())
    with pytest.raises(UnsupportedModel, match="IQ2_XXS"):
        open_gguf(shards[0])


def test_a_single_file_may_say_that_it_is_one_of_one(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    raw = RawGguf.parse(path.read_bytes())
    raw.keys.append(RawKey(b"split.count", U16, number(U16, 1)))
    path.write_bytes(raw.build())
    open_gguf(path).close()


def test_every_reference_vocabulary_opens(shared_cases: Path) -> None:
    paths = sorted(shared_cases.glob("vocab/*.gguf"))
    assert paths
    for path in paths:
        checkpoint = open_gguf(path)
        tokens = list(checkpoint.metadata["tokenizer.ggml.tokens"])  # type: ignore[call-overload]
        assert len(tokens) > 30_000, path.name
        assert checkpoint.tensors == {}
        checkpoint.close()


def test_metadata_is_what_the_gguf_package_reads(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    checkpoint = open_gguf(path)
    fields = gguf.GGUFReader(path).fields
    assert [key for key in fields if not key.startswith("GGUF.")] == list(checkpoint.metadata)
    for key, value in checkpoint.metadata.items():
        expected = fields[key].contents()
        assert (list(value) if isinstance(expected, list) else value) == expected, key  # type: ignore[call-overload]
    checkpoint.close()
