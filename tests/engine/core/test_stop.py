"""A sequence ends by its tokens at the right one, for the right reason."""

from __future__ import annotations

import pytest

from engine.api import FinishReason
from engine.core.stop import finish_reason
from engine.core.types import Sequence
from fakes.builders import make_sequence

EOS = 9


def after(prompt: int, reply: list[int], max_new: int) -> Sequence:
    """A sequence of which all but the token sampled last is computed."""
    seq = make_sequence(prompt, max_new=max_new, eos=[EOS])
    seq.token_ids += reply
    seq.num_computed = len(seq.token_ids) - (1 if reply else 0)
    return seq


@pytest.mark.parametrize(
    ("reply", "max_new", "limit", "reason"),
    [
        ([1], 3, 100, None),
        ([1, EOS], 3, 100, FinishReason.STOP),
        ([1, 2, 3], 3, 100, FinishReason.LENGTH),
        ([1, 2, EOS], 3, 100, FinishReason.STOP),
        ([1, 2], 3, 7, FinishReason.LENGTH),
        ([1, 2], 3, 8, None),
    ],
)
def test_reason(reply: list[int], max_new: int, limit: int, reason: FinishReason | None) -> None:
    assert finish_reason(after(5, reply, max_new), reply[-1], limit) is reason


def test_a_prompt_of_which_no_reply_is_wanted_ends_when_it_is_computed() -> None:
    seq = after(5, [], 0)
    assert finish_reason(seq, None, 100) is FinishReason.LENGTH
    seq.num_computed = 4
    assert finish_reason(seq, None, 100) is None


def test_an_eos_inside_the_prompt_ends_nothing() -> None:
    seq = make_sequence([EOS, 1], eos=[EOS])
    seq.num_computed = 1
    assert finish_reason(seq, None, 100) is None
