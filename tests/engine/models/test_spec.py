"""Hyper-parameters: what is read from both formats, and what is refused, by name."""

import math
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import CorruptModel, UnsupportedModel
from engine.formats.checkpoint import open_checkpoint
from engine.models.spec import ModelSpec, parse_spec
from fakes.paper_model import paper_config, paper_gguf
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from fakes.tiny_model import tiny_shape
from kernels.api import Activation


def _parse(path: Path) -> ModelSpec:
    with closing(open_checkpoint(path)) as checkpoint:
        return parse_spec(checkpoint)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_both_formats_give_the_same_sizes(architecture: str, tmp_path: Path) -> None:
    spec = _parse(write_tiny_gguf(tmp_path, architecture=architecture))
    shape = tiny_shape(architecture)
    assert (spec.hidden, spec.layers, spec.heads) == (shape.width, shape.layers, shape.heads)
    assert (spec.kv_heads, spec.head_dim, spec.ffn) == (
        shape.kv_heads,
        shape.head_dim,
        shape.hidden,
    )
    assert spec.tied_embeddings
    assert spec.activation is Activation.SILU
    folder = _parse(write_tiny_folder(tmp_path / "folder", model_type=architecture))
    for name in ("vocab_size", "context_tokens", "rope", "windows", "head_dim", "kv_heads"):
        assert getattr(folder, name) == getattr(spec, name), name
    assert folder.norm_epsilon == pytest.approx(spec.norm_epsilon)


def test_a_model_that_looks_ahead_is_refused() -> None:
    for model in (paper_gguf(attention__causal=False), paper_config(is_causal=False)):
        with pytest.raises(UnsupportedModel, match="looks ahead"):
            parse_spec(model)
    assert parse_spec(paper_gguf(attention__causal=True)).layers


def test_a_rerankers_score_is_refused_and_embeddings_have_no_head() -> None:
    with pytest.raises(UnsupportedModel, match="one vector of a text"):
        parse_spec(paper_gguf(pooling_type=4))
    spec = parse_spec(paper_gguf(pooling_type=3))
    assert spec.gives_embeddings
    assert spec.output_width == spec.hidden
    writes = parse_spec(paper_gguf(pooling_type=0))
    assert (writes.gives_embeddings, writes.output_width) == (False, writes.vocab_size)


def test_sizes_that_a_file_leaves_out_follow_from_others() -> None:
    spec = parse_spec(paper_gguf(attention__head_count_kv=None))
    assert (spec.kv_heads, spec.head_dim) == (4, 16)
    spec = parse_spec(paper_config(num_key_value_heads=None, head_dim=None, rms_norm_eps=None))
    assert (spec.kv_heads, spec.head_dim, spec.norm_epsilon) == (4, 16, 1e-6)


def test_the_head_is_the_embedding_where_the_file_says_so_or_has_no_other() -> None:
    assert parse_spec(paper_config()).tied_embeddings
    model = paper_config()
    model.add_tensor("lm_head.weight", 300, 64)
    assert not parse_spec(model).tied_embeddings
    model.metadata = {**model.metadata, "tie_word_embeddings": True}
    assert parse_spec(model).tied_embeddings
    assert not parse_spec(paper_config(tie_word_embeddings=False)).tied_embeddings
    gguf = paper_gguf()
    gguf.add_tensor("output.weight", 300, 64)
    assert not parse_spec(gguf).tied_embeddings


BAD_VALUES = (0, -1, 10**12, 10**400, 2.5, True, "4", [], [1, 2], [[1], [1]], math.nan)


@pytest.mark.parametrize("value", BAD_VALUES, ids=[repr(value)[:12] for value in BAD_VALUES])
def test_absurd_sizes_are_refused_by_name(value: object) -> None:
    for name in (
        "block_count",
        "context_length",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
    ):
        with pytest.raises(CorruptModel, match=f"llama.{name} is "):
            parse_spec(paper_gguf(**{name.replace(".", "__"): value}))
    for name in (
        "num_hidden_layers",
        "max_position_embeddings",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
    ):
        with pytest.raises(CorruptModel, match=f"{name} is "):
            parse_spec(paper_config(**{name: value}))


@pytest.mark.parametrize("value", [0, -1e-5, 2, 10**400, math.inf, math.nan, "1e-5", False, []])
def test_absurd_numbers_are_refused_by_name(value: object) -> None:
    with pytest.raises(CorruptModel, match="layer_norm_rms_epsilon is "):
        parse_spec(paper_gguf(attention__layer_norm_rms_epsilon=value))
    with pytest.raises(CorruptModel, match="rms_norm_eps is "):
        parse_spec(paper_config(rms_norm_eps=value))
    if value != 2:
        with pytest.raises(CorruptModel, match="rope_theta is "):
            parse_spec(paper_config(rope_theta=value))
        with pytest.raises(CorruptModel, match=r"rope\.freq_base is "):
            parse_spec(paper_gguf(rope__freq_base=value))


def test_a_missing_size_is_named() -> None:
    with pytest.raises(CorruptModel, match=r"llama\.block_count is missing"):
        parse_spec(paper_gguf(block_count=None))
    with pytest.raises(CorruptModel, match="hidden_size is missing"):
        parse_spec(paper_config(hidden_size=None))


def test_heads_must_fit_together() -> None:
    with pytest.raises(CorruptModel, match="4 attention heads cannot share 3 key heads"):
        parse_spec(paper_gguf(attention__head_count_kv=3))
    with pytest.raises(CorruptModel, match="heads have 7 values"):
        parse_spec(paper_config(head_dim=7))


def test_one_number_for_each_layer_counts_if_all_are_equal() -> None:
    assert parse_spec(paper_gguf(attention__head_count_kv=[2, 2])).kv_heads == 2
    with pytest.raises(CorruptModel, match="head_count_kv is "):
        parse_spec(paper_gguf(attention__head_count_kv=[2, 4]))


def test_an_embedding_table_that_is_none_is_refused() -> None:
    model = paper_gguf()
    model.add_tensor("token_embd.weight", 64)
    with pytest.raises(CorruptModel, match=r"token_embd\.weight must be a table"):
        parse_spec(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expert_count": 8}, "mixture-of-experts"),
        ({"attention__value_length": 32}, "value_length"),
        ({"rope__dimension_count": 8}, "partly rotated"),
        ({"rope__scaling__type": "longrope"}, "longrope"),
    ],
)
def test_gguf_models_beyond_this_version_are_refused_by_name(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        parse_spec(paper_gguf(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantization_config": {"quant_method": "gptq"}}, "gptq"),
        ({"hidden_act": "relu"}, "relu"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "longrope"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "partial"),
        (
            {
                "use_sliding_window": True,
                "sliding_window": 64,
                "layer_types": ["full_attention", "linear_attention"],
            },
            "linear_attention",
        ),
    ],
)
def test_folders_beyond_this_version_are_refused_by_name(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        parse_spec(paper_config(**changes))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rope_scaling": "linear"}, "rope_scaling"),
        ({"rope_scaling": {"type": 5}}, "type"),
        ({"rope_scaling": {"type": "linear"}}, "factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor is 0"),
        (
            {
                "rope_scaling": {
                    "rope_type": "llama3",
                    "factor": 8,
                    "low_freq_factor": 4,
                    "high_freq_factor": 4,
                    "original_max_position_embeddings": 64,
                }
            },
            "high_freq_factor is 4",
        ),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"use_sliding_window": True}, "sliding_window is missing"),
        (
            {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["full_attention"]},
            "layer_types",
        ),
        ({"hidden_act": 3}, "hidden_act"),
        ({"quantization_config": 3}, "quantization_config"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_by_name(
    changes: dict[str, object], field: str
) -> None:
    with pytest.raises(CorruptModel, match=field):
        parse_spec(paper_config(**changes))


def test_sliding_windows_are_per_layer() -> None:
    changes = {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1}
    assert parse_spec(paper_config(**changes)).windows == (0, 64)
    assert parse_spec(paper_config(sliding_window=64)).windows == (0, 0)  # llama has none
    mistral = paper_config(sliding_window=64)
    mistral.architecture = "mistral"
    assert parse_spec(mistral).windows == (64, 64)
    assert parse_spec(paper_gguf(attention__sliding_window=64)).windows == (64, 64)
