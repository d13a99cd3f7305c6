"""A scheduler driven step by step with its fake runner, recounted after every move."""

from __future__ import annotations

from engine.api import FinishReason
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence, SeqUpdate, StepBatch
from fakes.fake_runner import FakeRunner


class Bench:
    """A scheduler with its runner and a clock of one second a step."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.runner = FakeRunner(scheduler.config)
        self.now_s = 0.0

    def add(self, *sequences: Sequence) -> None:
        for seq in sequences:
            self.scheduler.add(seq)

    def schedule(self) -> StepBatch:
        self.now_s += 1
        return self.scheduler.schedule(self.now_s)

    def step(self) -> tuple[StepBatch, tuple[SeqUpdate, ...]]:
        batch = self.schedule()
        self.scheduler.check()
        updates = self.scheduler.update(batch, self.runner.execute(batch), self.now_s)
        self.scheduler.check()
        return batch, updates

    def step_until_parked(self) -> StepBatch:
        for _ in range(200):
            batch, _ = self.step()
            if batch.parked:
                return batch
        raise AssertionError("nothing was parked in 200 steps")

    def run(self) -> dict[str, FinishReason]:
        reasons: dict[str, FinishReason] = {}
        for _ in range(1000):
            if self.scheduler.is_idle:
                return reasons
            batch, updates = self.step()
            assert not batch.is_empty
            reasons |= {u.seq.request_id: u.finish for u in updates if u.finish}
        raise AssertionError("not idle after 1000 steps")


def reply_of(seq: Sequence) -> list[int]:
    return seq.token_ids[seq.num_prompt :]


def prompt_of(seq: Sequence) -> list[int]:
    return seq.token_ids[: seq.num_prompt]
