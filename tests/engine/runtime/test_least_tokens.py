"""A reply that must have so many tokens has them: what would end it is kept back until then, and only that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.api import (
    Finished,
    FinishReason,
    Grammar,
    GrammarKind,
    Request,
    SamplingParams,
    TokenIds,
)
from engine.errors import InvalidRequest
from engine.runtime.engine import Engine
from engine.runtime.least_tokens import LeastTokens
from engine.runtime.token_mask import TokenMask
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, load

PROMPT = TokenIds(ids=(5, 6, 7, 8))
GREEDY = SamplingParams(temperature=0)


def request(name: str, **fields: object) -> Request:
    return ask(name, **{"prompt": PROMPT, "sampling": GREEDY, "max_tokens": 40, **fields})


def end_of(ear: Ear, name: str) -> Finished:
    end = ear.wait_end(name)
    assert isinstance(end, Finished), end
    return end


@pytest.mark.parametrize("sampling", [GREEDY, SamplingParams(temperature=0.8, seed=3)])
@pytest.mark.parametrize("variant", ["auto", "torch"])
def test_what_would_end_it_is_kept_back(
    engine: Engine, model_path: Path, sampling: SamplingParams, variant: str
) -> None:
    load(engine, model_path, pool_tokens=2048, cpu_variant=variant)
    free = run_all(engine, [request("free", sampling=sampling)]).tokens("free")
    ends = frozenset(free[3:5])
    ear = run_all(
        engine,
        [
            request("short", sampling=sampling, stop_ids=tuple(ends)),
            request("long", sampling=sampling, stop_ids=tuple(ends), min_tokens=12),
        ],
    )
    short, long = ear.tokens("short"), ear.tokens("long")
    assert short == free[: 1 + min(free.index(token_id) for token_id in ends)]
    assert len(long) >= 12
    assert not ends.intersection(long[:11])
    if sampling is GREEDY:
        assert long[: len(short) - 1] == short[:-1]
    assert end_of(ear, "short").reason is FinishReason.STOP


def test_a_grammar_at_its_end_still_ends_it(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    grammar = Grammar(kind=GrammarKind.REGEX, source="[a-c]{4}")
    one = request("a", grammar=grammar, ignore_eos=False, min_tokens=20)
    ear = run_all(engine, [one])
    assert end_of(ear, "a").reason is FinishReason.STOP
    assert len(ear.text("a")) == 4


def test_more_than_it_may_have_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="min_tokens is 9, allowed is 0 to 8"):
        request("a", max_tokens=8, min_tokens=9)


def test_masks_are_joined_and_give_way_where_nothing_is_left() -> None:
    least = LeastTokens(2, [0, 33, 99], vocab_size=40)
    grammar = TokenMask(40)
    grammar.words[:] = [0b1001, 0b10]
    row = np.arange(40, dtype=np.float32)
    alone = least.within(None, 0)
    assert alone is not None
    assert set(np.flatnonzero(alone.masked(row) == -np.inf)) == {0, 33}
    joint = least.within(grammar, 1)
    assert joint is not None
    assert list(np.flatnonzero(joint.masked(row) > -np.inf)) == [3]
    assert least.within(grammar, 2) is grammar
    assert least.within(None, 2) is None
    grammar.words[:] = [0b1, 0b10]
    assert least.within(grammar, 0) is grammar
