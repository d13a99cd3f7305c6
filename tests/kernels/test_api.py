"""The recorder: what it writes down, and the mistakes it does not let through."""

import pytest

from fakes.tiny_programs import TinyProgram
from kernels.api import AttentionShape, Extent, Recorder, RotaryShape, WeightRef


def test_a_program_lists_each_weight_once_and_ends_in_logits_of_the_vocabulary() -> None:
    program = TinyProgram(qk_norm=True).record()
    names = [weight.name for weight in program.weights]
    assert len(names) == len(set(names))
    assert program.logits.width == 100
    assert program.logits.extent is Extent.OUTPUTS


def test_widths_that_do_not_fit_are_refused_by_name() -> None:
    recorder = Recorder()
    x = recorder.embedding(WeightRef("table", (10, 12)))
    with pytest.raises(ValueError, match="wide: takes 13 values, the buffer has 12"):
        recorder.linear(x, WeightRef("wide", (4, 13)))
    with pytest.raises(ValueError, match="norm: rows of 12 are no multiple of its 5"):
        recorder.rms_norm(x, WeightRef("norm", (5,)), epsilon=1e-5)
    with pytest.raises(ValueError, match="rotary: 2 heads of 8, the buffer has 12"):
        recorder.rotary(x, RotaryShape(2, 8, 8, (1.0,) * 4))
    with pytest.raises(ValueError, match="attention: 2 heads of 8, the buffer has 12"):
        recorder.attention(x, AttentionShape(0, 2, 1, 8, 1.0))


def test_a_weight_cannot_have_two_shapes() -> None:
    recorder = Recorder()
    x = recorder.embedding(WeightRef("table", (10, 12)))
    with pytest.raises(ValueError, match="recorded with shape"):
        recorder.linear(x, WeightRef("table", (11, 12)))
