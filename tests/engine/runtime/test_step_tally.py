"""Steps are counted by kind: replies, prompts, what they held."""

from __future__ import annotations

from pathlib import Path

from engine.core.types import Sequence, StepRow
from engine.runs import StepCount
from engine.runtime.engine import Engine
from engine.runtime.step_tally import StepTally
from fakes.listening import run_all
from fakes.parking_rig import four, load
from fakes.tiny_files import write_tiny_gguf


def sequence(num_tokens: int) -> Sequence:
    return Sequence(
        request_id="a",
        token_ids=[1] * num_tokens,
        num_prompt=num_tokens,
        max_new_tokens=9,
        eos_ids=frozenset(),
        priority=1,
        arrival=0,
        arrival_s=0.0,
    )


def test_steps_of_a_kind_are_added_up() -> None:
    tally = StepTally()
    reply = StepRow(sequence(11), 10, 1)
    later, prompt = StepRow(sequence(12), 11, 1), StepRow(sequence(40), 8, 4)
    tally.add((reply,), num_replies=1, prompt_tokens=0, seconds=0.5)
    tally.add((later,), num_replies=1, prompt_tokens=0, seconds=0.25)
    tally.add((reply, prompt), num_replies=1, prompt_tokens=4, seconds=2.0)
    assert tally.counts() == (
        StepCount(
            replies=1,
            has_prompts=False,
            steps=2,
            seconds=0.75,
            prompt_tokens=0,
            context_tokens=21,
        ),
        StepCount(
            replies=1,
            has_prompts=True,
            steps=1,
            seconds=2.0,
            prompt_tokens=4,
            context_tokens=10 + 32,
        ),
    )


def test_an_engine_tells_all_its_steps(engine: Engine, tmp_path: Path) -> None:
    model_path = write_tiny_gguf(tmp_path)
    load(engine, model_path, pool_tokens=2048)
    ear = run_all(engine, four())
    steps = engine.snapshot().steps
    written = sum(len(ear.tokens(request.request_id)) for request in four())
    counted = sum(one.replies * one.steps for one in steps)
    assert written - 4 <= counted <= written, "the first token of each may come with its prompt"
    assert sum(one.prompt_tokens for one in steps if one.has_prompts) > 0
    assert all(one.prompt_tokens == 0 for one in steps if not one.has_prompts)
    assert all(one.seconds > 0 for one in steps)
    load(engine, model_path)
    assert engine.snapshot().steps == ()
