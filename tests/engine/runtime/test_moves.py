"""What a request is told that the scheduler ended: the cause, the figures, a remedy that helps."""

from __future__ import annotations

import pytest

from engine.core.parked import EndReason
from engine.core.types import SeqEnd
from engine.errors import EngineError, PoolFull
from engine.runtime.moves import error_of
from fakes.builders import make_sequence


def an_error(reason: EndReason, waited_s: float = 0.0) -> EngineError:
    seq = make_sequence(35, max_new=600)
    return error_of(SeqEnd(seq, reason, needed_tokens=577, limit_tokens=512, waited_s=waited_s))


@pytest.mark.parametrize(
    ("reason", "helps", "does_not"),
    [
        (EndReason.POOL_FULL, "--preempt-ram", "fewer choices"),
        (EndReason.OUTGREW_POOL, "fewer choices (n)", "--preempt-ram"),
    ],
)
def test_the_remedy_is_one_that_helps(reason: EndReason, helps: str, does_not: str) -> None:
    error = an_error(reason)
    assert isinstance(error, PoolFull)
    assert str(error).startswith("Context size has been exceeded. ")
    assert helps in str(error)
    assert does_not not in str(error)
    assert "larger pool" in str(error)
    assert "577" in str(error)
    assert "512" in str(error)


def test_the_prompt_is_told_apart_from_all_that_is_held() -> None:
    error = an_error(EndReason.OUTGREW_POOL)
    assert isinstance(error, PoolFull)
    assert (error.prompt_tokens, error.needed_tokens, error.limit_tokens) == (35, 577, 512)


def test_who_waited_may_have_been_parked_by_hand_and_not_for_want_of_room() -> None:
    words = str(an_error(EndReason.WAITED_TOO_LONG, waited_s=1.5))
    assert "waited 1.5 s in line or parked" in words
    assert "for room" not in words
