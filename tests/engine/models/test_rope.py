"""Angles of rotary embedding in GGUF files; those of config.json are compared in test_against_transformers."""

import numpy as np
import pytest

from engine.errors import CorruptModel
from engine.models.rope import plain_rope
from engine.models.spec import parse_spec
from fakes.paper_model import paper_config, paper_gguf


def test_plain_angles_fall_by_the_base() -> None:
    assert plain_rope(10_000.0, 4).inverse_frequencies == (1.0, 0.01)


def test_a_factor_without_a_kind_is_linear() -> None:
    plain = parse_spec(paper_gguf()).rope
    for changes in (
        {"rope__scaling__factor": 4.0},
        {"rope__scaling__type": "linear", "rope__scaling__factor": 4.0},
        {"rope__scale_linear": 4.0},
    ):
        scaled = parse_spec(paper_gguf(**changes)).rope
        quarter = [value / 4 for value in plain.inverse_frequencies]
        assert list(scaled.inverse_frequencies) == pytest.approx(quarter)
    assert (
        parse_spec(paper_gguf(rope__scaling__type="none", rope__scaling__factor=4.0)).rope == plain
    )


def test_yarn_is_the_same_in_both_formats() -> None:
    gguf = paper_gguf(
        rope__scaling__type="yarn",
        rope__scaling__factor=4.0,
        rope__scaling__original_context_length=128,
    )
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
    assert parse_spec(gguf).rope == parse_spec(paper_config(rope_scaling=scaling)).rope


def test_the_tensor_of_factors_divides_the_angles() -> None:
    model = paper_gguf()
    factors = np.arange(1, 9, dtype=np.float32)
    model.add_values("rope_freqs.weight", factors)
    expected = np.array(parse_spec(paper_gguf()).rope.inverse_frequencies) / factors
    assert list(parse_spec(model).rope.inverse_frequencies) == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    "factors", [[1.0] * 7, [1.0] * 7 + [0.0], [1.0] * 7 + [np.nan], [1.0] * 7 + [np.inf]]
)
def test_factors_that_make_no_sense_are_refused(factors: list[float]) -> None:
    model = paper_gguf()
    model.add_values("rope_freqs.weight", np.array(factors, dtype=np.float32))
    with pytest.raises(CorruptModel, match=r"rope_freqs\.weight"):
        parse_spec(model)
