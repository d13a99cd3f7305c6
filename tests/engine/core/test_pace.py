"""Prompts beside replies: on a virtual clock replies keep their pace, and prompts a fair part of theirs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from engine.core.cost_model import Calibration, CostModel
from engine.core.pace import REMEASURE_AFTER, STRETCH, StepPace
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence, StepBatch
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.fake_runner import FakeRunner
from fakes.stepping import assert_undisturbed

MACHINES = {
    "two cores": Calibration(),
    "a graphics card": Calibration(
        step_s=0.008, decode_token_s=1e-4, prefill_token_s=4e-5, context_token_s=1e-9
    ),
    "dear prompts": Calibration(step_s=0.001, decode_token_s=0.001, prefill_token_s=0.002),
}
Noise = Callable[[], float]
BY_HALF = 1.5
"""What people are promised; a part of it is left for what is done beside the step."""


class PacedBench:
    """A scheduler whose steps take what a machine needs for them, and the pace that learns from it."""

    def __init__(self, machine: Calibration, noise: Noise = lambda: 1.0) -> None:
        self.scheduler = make_scheduler(2048, page_tokens=32, max_running=8, step_tokens=256)
        self.runner = FakeRunner(self.scheduler.config)
        self.pace = StepPace()
        self.cost = CostModel(machine)
        self.noise = noise
        self.now_s = 0.0

    def step(self) -> tuple[StepBatch, float]:
        """One step, and the seconds it took."""
        most = self.pace.beside_replies(self.scheduler.num_replies)
        batch = self.scheduler.schedule(self.now_s, beside_replies=most)
        seconds = self.noise() * self.cost.step_s((row.start, row.count) for row in batch.rows)
        self.now_s += seconds
        self.pace.observe(
            num_replies=batch.num_replies,
            prompt_tokens=batch.num_tokens - batch.num_replies,
            seconds=seconds,
        )
        self.scheduler.update(batch, self.runner.execute(batch), self.now_s)
        return batch, seconds

    def read(self, seq: Sequence) -> list[tuple[StepBatch, float]]:
        """Ask now, and step until the first token has come."""
        seq.arrival_s = self.now_s
        self.scheduler.add(seq)
        steps = []
        while seq.first_token_s is None:
            steps.append(self.step())
        return steps


def chatting(bench: PacedBench, chats: int) -> list[Sequence]:
    """So many replies that go on, each timed for a while."""
    replies = [make_sequence(40, arrival=i, max_new=4000) for i in range(chats)]
    for seq in replies:
        bench.read(seq)
        for _ in range(3):
            bench.step()
    return replies


@pytest.mark.parametrize("chats", [1, 3])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_long_prompt_beside_replies_stretches_their_steps_by_half_at_most(
    machine: str, chats: int
) -> None:
    bench = PacedBench(MACHINES[machine])
    chatting(bench, chats)
    _, alone_s = bench.step()
    steps = bench.read(make_sequence(340, arrival=chats))
    stretches = sorted(seconds / alone_s for _, seconds in steps)
    one_token = bench.cost.step_s([(0, 1)] * chats + [(0, 2)]) / alone_s
    assert stretches[len(stretches) // 2] <= max(BY_HALF, one_token) + 0.05
    assert all(batch.num_replies >= chats for batch, _ in steps)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_long_prompt_takes_at_most_six_times_as_long_as_alone(machine: str) -> None:
    alone, bench = PacedBench(MACHINES[machine]), PacedBench(MACHINES[machine])
    chatting(bench, 3)
    alone_s = sum(seconds for _, seconds in alone.read(make_sequence(1000, arrival=9)))
    beside_s = sum(seconds for _, seconds in bench.read(make_sequence(1000, arrival=9)))
    assert beside_s <= 6 * alone_s


def test_prompts_asked_together_do_not_wait_for_the_pace_of_the_first_reply() -> None:
    bench = PacedBench(Calibration())
    prompts = [make_sequence(300, arrival=i, max_new=50) for i in range(4)]
    for seq in prompts:
        bench.scheduler.add(seq)
    steps = [bench.step() for _ in range(5)]
    assert all(seq.first_token_s is not None for seq in prompts)
    assert max(seconds for _, seconds in steps) <= bench.cost.step_s([(1000, 256)])


def test_where_nobody_replies_prompts_have_whole_steps() -> None:
    bench = PacedBench(Calibration())
    steps = bench.read(make_sequence(1000, arrival=0))
    assert [batch.num_tokens for batch, _ in steps] == [256, 256, 256, 232]


def test_steps_that_were_held_up_now_and_then_do_not_change_the_pace() -> None:
    random_of = random.Random(3)
    noise = lambda: 20.0 if random_of.random() < 0.1 else 1.0  # noqa: E731 - a noise is a function
    quiet, noisy = PacedBench(Calibration()), PacedBench(Calibration(), noise)
    for bench in (quiet, noisy):
        chatting(bench, 3)
    most = max(batch.num_tokens for batch, _ in quiet.read(make_sequence(600, arrival=9)))
    steps = noisy.read(make_sequence(600, arrival=9))
    assert max(batch.num_tokens for batch, _ in steps) <= 2 * most
    assert len(steps) < 600


def test_a_step_with_more_replies_than_ever_before_is_timed_without_prompts_first() -> None:
    bench = PacedBench(Calibration())
    bench.read(make_sequence(40, arrival=0, max_new=100))
    assert bench.pace.beside_replies(1) == 0
    bench.step()
    assert bench.pace.beside_replies(1) != 0
    assert bench.pace.beside_replies(2) == 0


def test_a_long_prompt_lets_replies_be_timed_without_it_now_and_then() -> None:
    bench = PacedBench(Calibration())
    chatting(bench, 2)
    steps = bench.read(make_sequence(2000, arrival=9))
    without = [i for i, (batch, _) in enumerate(steps) if batch.num_tokens == batch.num_replies]
    assert without
    assert without[0] == REMEASURE_AFTER
    assert len(without) <= len(steps) / REMEASURE_AFTER


def test_with_no_figures_at_all_a_prompt_still_moves() -> None:
    pace = StepPace()
    pace.observe(num_replies=1, prompt_tokens=0, seconds=0.001)
    assert pace.beside_replies(1) == 1


def test_tokens_that_seem_to_cost_nothing_become_more_step_by_step() -> None:
    pace, tokens = StepPace(), []
    pace.observe(num_replies=1, prompt_tokens=0, seconds=0.001)
    for _ in range(5):
        tokens.append(pace.beside_replies(1) or 0)
        pace.observe(num_replies=1, prompt_tokens=tokens[-1], seconds=0.001)
    assert tokens == [1, 2, 4, 8, 16]
    pace.observe(num_replies=1, prompt_tokens=32, seconds=0.003)
    price_s = (0.003 - 0.001) / 32
    allowed_s = (STRETCH - 1) * 0.001
    assert pace.beside_replies(1) == int(allowed_s / price_s), "at the price of the last one"


@pytest.mark.parametrize("seed", range(8))
def test_any_pace_changes_when_tokens_come_but_no_token(seed: int) -> None:
    random_of = random.Random(seed)
    scheduler: Scheduler = make_scheduler(24, page_tokens=4, step_tokens=16, park=in_place())
    runner = FakeRunner(scheduler.config)
    chats = [
        make_sequence(
            random_of.randint(1, 40), arrival=i, max_new=20, arrival_s=random_of.uniform(0, 20)
        )
        for i in range(6)
    ]
    for seq in chats:
        scheduler.add(seq)
    for step in range(3000):
        if scheduler.is_idle:
            break
        most = random_of.choice([None, 0, 1, 2, 5])
        batch = scheduler.schedule(float(step), beside_replies=most)
        scheduler.check()
        assert batch.num_tokens <= 16
        scheduler.update(batch, runner.execute(batch), float(step))
        runner.give_back(scheduler.collect_released())
    assert scheduler.is_idle
    assert_undisturbed(*chats)
