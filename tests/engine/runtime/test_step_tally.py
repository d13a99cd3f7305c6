"""Steps are counted by kind: replies, prompts, what they held."""

from __future__ import annotations

from engine.core.types import Sequence, StepBatch, StepRow
from engine.runs import StepCount
from engine.runtime.step_tally import StepTally


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
    tally.add(StepBatch(1, (reply,), is_steady=True), 1, 0.5)
    tally.add(StepBatch(2, (StepRow(sequence(12), 11, 1),), is_steady=True), 1, 0.25)
    tally.add(StepBatch(3, (reply, StepRow(sequence(40), 8, 4))), 1, 2.0)
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
