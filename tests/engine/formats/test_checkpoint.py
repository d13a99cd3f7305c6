"""The one door to model files: which reader opens what, and the facts shown of a model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import CorruptModel, ModelNotFound, UnsupportedModel
from engine.formats.checkpoint import FileFormat, inspect_model, open_checkpoint
from engine.models.spec import parse_spec
from fakes.gguf_bytes import U32, RawGguf, RawKey, number, text
from fakes.tiny_files import tiny_weights, write_tiny_folder, write_tiny_gguf


def num_parameters(model_type: str, *, tied: bool) -> int:
    return sum(weight.size for weight in tiny_weights(model_type, tied=tied).values())


def test_a_gguf_file_opens(tmp_path: Path) -> None:
    assert open_checkpoint(write_tiny_gguf(tmp_path)).format is FileFormat.GGUF


def test_a_folder_opens(tmp_path: Path) -> None:
    assert open_checkpoint(write_tiny_folder(tmp_path)).format is FileFormat.SAFETENSORS


@pytest.mark.parametrize("tensors_per_shard", [0, 8])
def test_a_folder_of_one_gguf_model_opens(tmp_path: Path, tensors_per_shard: int) -> None:
    path = write_tiny_gguf(tmp_path, tensors_per_shard=tensors_per_shard)
    assert open_checkpoint(tmp_path).path == path


def test_safetensors_go_before_a_gguf_file_beside_them(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path)
    write_tiny_gguf(tmp_path)
    assert open_checkpoint(tmp_path).format is FileFormat.SAFETENSORS


def test_a_folder_of_several_gguf_models_names_them(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path, storage="F32")
    write_tiny_gguf(tmp_path, storage="Q8_0", tensors_per_shard=8)
    with pytest.raises(
        UnsupportedModel, match=r"2 GGUF models \(tiny-llama-F32\.gguf, tiny-llama-Q8_0-00001"
    ):
        open_checkpoint(tmp_path)


def test_a_folder_with_an_incomplete_split_model_names_what_is_missing(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path, tensors_per_shard=8).unlink()
    with pytest.raises(
        ModelNotFound, match=r"missing beside it, the first is tiny-llama-F32-00001-of-00003\.gguf"
    ):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "name", ["a-00001-of-00000.gguf", "a-00000-of-00002.gguf", "-00001-of-00001.gguf"]
)
def test_an_odd_shard_name_without_split_keys_is_a_plain_name(tmp_path: Path, name: str) -> None:
    write_tiny_gguf(tmp_path).rename(tmp_path / name)
    assert open_checkpoint(tmp_path).path == tmp_path / name


@pytest.mark.parametrize("name", ["nothing", "a\0b", "x" * 5000, "no/such/folder.gguf"])
def test_a_path_to_nothing_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelNotFound):
        open_checkpoint(tmp_path / name)


def test_an_empty_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"config\.json is missing"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"])
def test_a_pickled_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(UnsupportedModel, match=f"{name}: pickled weights are refused"):
        open_checkpoint(tmp_path / name)


def test_a_lone_safetensors_file_names_the_remedy(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path)
    with pytest.raises(UnsupportedModel, match="give the folder that holds it"):
        open_checkpoint(folder / "model.safetensors")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not on this system")
def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    with pytest.raises(ModelNotFound):
        open_checkpoint(tmp_path / "model.gguf")
    with pytest.raises(ModelNotFound):
        open_checkpoint(tmp_path)


def test_facts_of_a_gguf_model(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, architecture="qwen3", storage="Q4_1", tied=False)
    info = inspect_model(path, "tiny")
    assert info.name == "tiny"
    assert info.path == path
    assert info.architecture == "qwen3"
    assert info.quantization == "Q4_1"
    assert info.parameters == num_parameters("qwen3", tied=False)
    assert info.size_bytes == path.stat().st_size
    assert info.context_tokens == 512
    assert info.has_chat_template
    assert info.created_s == int(path.stat().st_mtime)


def test_facts_of_a_split_model_are_of_all_its_files(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, tensors_per_shard=8)
    info = inspect_model(path, "tiny")
    assert info.parameters == num_parameters("llama", tied=True)
    assert info.size_bytes == sum(file.stat().st_size for file in tmp_path.iterdir())


def test_facts_of_a_folder(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, model_type="mistral", dtype="BF16", shards=2)
    (folder / "tokenizer_config.json").unlink()
    info = inspect_model(folder, "tiny")
    assert info.architecture == "mistral"
    assert info.quantization == "BF16"
    assert info.parameters == num_parameters("mistral", tied=True)
    assert info.size_bytes == sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert info.context_tokens == 512
    assert not info.has_chat_template


def test_facts_of_a_vocabulary_without_weights(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    raw = RawGguf.parse(path.read_bytes())
    raw.tensors, raw.data = [], b""
    path.write_bytes(raw.build())
    info = inspect_model(path, "vocabulary")
    assert (info.quantization, info.parameters) == ("none", 0)


def test_a_context_length_that_cannot_be_is_refused(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    raw = RawGguf.parse(path.read_bytes())
    raw.key("llama.context_length").value = number(U32, (1 << 32) - 1)
    path.write_bytes(raw.build())
    with pytest.raises(
        CorruptModel, match=r"'llama\.context_length' is 4294967295, allowed is up to"
    ):
        inspect_model(path, "tiny")


def test_looking_at_a_model_loads_no_torch(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    folder = write_tiny_folder(tmp_path / "folder", dtype="BF16")
    code = (
        "import sys; from pathlib import Path; from engine.formats.checkpoint import inspect_model\n"
        "for path in sys.argv[1:]: inspect_model(Path(path), 'x')\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(path), str(folder)], check=True, timeout=60)


@pytest.mark.parametrize("write", [write_tiny_gguf, write_tiny_folder])
def test_what_a_token_takes_in_the_pool_is_read_off_either_format(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    path = write(tmp_path)
    with closing(open_checkpoint(path)) as checkpoint:
        spec = parse_spec(checkpoint)
    kept = 2 * spec.layers * spec.kv_heads * spec.head_dim
    assert inspect_model(path, "tiny").kv_values_per_token == kept


@pytest.mark.parametrize(
    ("value", "license_"),
    [((8, text("apache-2.0")), "apache-2.0"), ((4, number(U32, 3)), ""), (None, "")],
)
def test_the_licence_is_what_the_file_says(
    tmp_path: Path, value: tuple[int, bytes] | None, license_: str
) -> None:
    path = write_tiny_gguf(tmp_path)
    if value is not None:
        raw = RawGguf.parse(path.read_bytes())
        raw.keys.append(RawKey(b"general.license", *value))
        path.write_bytes(raw.build())
    assert inspect_model(path, "tiny").license == license_
