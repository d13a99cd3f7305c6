"""Whose limit a reply reached is told only where it is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.api import EngineSnapshot, Usage
from fakes.fake_engine import FakeEngine
from studio.models.length_limit import LengthLimit, reached_limit, window_limit


def engine_with(window_tokens: int) -> EngineSnapshot:
    return replace(FakeEngine().snapshot(), window_tokens=window_tokens)


@pytest.mark.parametrize(
    ("completion_tokens", "max_tokens", "window_tokens", "limit"),
    [
        (24, None, 1024, LengthLimit.POOL),
        (24, 24, 1024, LengthLimit.REPLY),
        (24, 25, 1024, LengthLimit.POOL),
        (1048, None, 2048, LengthLimit.MODEL),
        (1000, None, 2048, None),
    ],
)
def test_the_limit_that_was_reached(
    completion_tokens: int, max_tokens: int | None, window_tokens: int, limit: LengthLimit | None
) -> None:
    usage = Usage(
        prompt_tokens=1000,
        cached_tokens=0,
        completion_tokens=completion_tokens,
        queued_s=0.0,
        prefill_s=0.1,
        decode_s=0.1,
    )
    assert reached_limit(usage, max_tokens, engine_with(window_tokens)) is limit


def test_without_a_model_nothing_limits() -> None:
    assert window_limit(replace(engine_with(0), model=None)) is None
