"""Every weight of a program is found in a file, or all that is wrong with it is said at once."""

import numpy as np
import pytest

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.base import FileFormat
from engine.models.registry import find_architecture, supported_architectures
from engine.models.spec import parse_spec
from engine.models.weight_map import WeightSource, map_weights
from fakes.paper_model import PaperModel, paper_config, paper_gguf
from kernels.api import Program


def _whole(model: PaperModel) -> Program:
    """Give `model` every tensor its program needs, under the file's names."""
    architecture = find_architecture(model.architecture)
    spec = parse_spec(model)
    program = architecture.record(spec)
    for weight in program.weights:
        alone = PaperModel(model.format, model.metadata, model.architecture)
        with pytest.raises(CorruptModel) as error:
            map_weights(Program((), (), (weight,), program.logits), architecture, spec, alone)
        name = str(error.value).split(": ")[1].split(" is missing")[0]
        model.add_tensor(name, *weight.shape)
    return program


def _map(model: PaperModel) -> dict[str, WeightSource]:
    architecture = find_architecture(model.architecture)
    spec = parse_spec(model)
    return map_weights(architecture.record(spec), architecture, spec, model)


@pytest.mark.parametrize("architecture", supported_architectures())
def test_every_weight_of_a_whole_folder_is_found(architecture: str) -> None:
    model = paper_config()
    model.architecture = architecture
    program = _whole(model)
    sources = _map(model)
    assert set(sources) == {weight.name for weight in program.weights}
    assert not any(source.paired_head_dim for source in sources.values())


def test_only_query_and_key_rows_of_a_llama_gguf_are_paired() -> None:
    model = paper_gguf()
    _whole(model)
    paired = [source.tensor for source in _map(model).values() if source.paired_head_dim == 16]
    assert paired == [f"blk.{i}.attn_{part}.weight" for i in (0, 1) for part in ("q", "k")]


def test_all_that_is_wrong_is_said_at_once() -> None:
    model = paper_gguf()
    _whole(model)
    del model.tensors["blk.1.ffn_up.weight"]
    del model.tensors["output_norm.weight"]
    model.add_tensor("blk.0.attn_k.weight", 64, 32)
    with pytest.raises(CorruptModel) as error:
        _map(model)
    message = str(error.value)
    assert "3 of 20 tensors" in message
    assert "blk.1.ffn_up.weight is missing" in message
    assert "output_norm.weight is missing" in message
    assert "blk.0.attn_k.weight has shape [64, 32], it must be [32, 64]" in message


def test_a_long_list_of_faults_is_cut_short() -> None:
    with pytest.raises(CorruptModel, match=r"and 11 more; the file") as error:
        _map(paper_gguf())
    assert len(str(error.value)) < 1000


def test_tensors_that_would_make_another_model_are_refused() -> None:
    model = paper_gguf()
    _whole(model)
    model.add_values("rope_freqs.weight", np.ones(8, dtype=np.float32))
    _map(model)
    model.add_tensor("blk.0.attn_sinks.weight", 4)
    with pytest.raises(UnsupportedModel, match=r"1 tensors are unknown .* blk\.0\.attn_sinks"):
        _map(model)


def test_a_tied_head_in_the_file_is_no_fault() -> None:
    model = paper_config(tie_word_embeddings=True)
    _whole(model)
    model.add_tensor("lm_head.weight", 300, 64)
    assert "head.weight" not in _map(model)
    assert model.format is FileFormat.SAFETENSORS
