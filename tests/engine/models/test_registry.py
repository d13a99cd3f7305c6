"""The registry: every entry records a step, unknown names are refused with what there is."""

import subprocess
import sys

import pytest

from engine.errors import UnsupportedModel
from engine.models.registry import find_architecture, supported_architectures
from engine.models.spec import parse_spec
from fakes.paper_model import paper_config
from kernels.api import PagedAttention


@pytest.mark.parametrize("name", supported_architectures())
def test_every_architecture_records_a_step(name: str) -> None:
    program = find_architecture(name).record(parse_spec(paper_config()))
    assert program.logits.width == 300
    assert [op.shape.layer for op in program.ops if isinstance(op, PagedAttention)] == [0, 1]


def test_an_unknown_architecture_is_refused_with_what_there_is() -> None:
    with pytest.raises(UnsupportedModel, match="'mamba' are not supported; llama, mistral, qwen2"):
        find_architecture("mamba")


def test_models_are_recorded_without_a_tensor_library() -> None:
    code = (
        "import sys; from engine.models.registry import *;"
        "[find_architecture(name) for name in supported_architectures()];"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
