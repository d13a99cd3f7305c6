"""A scheduler driven step by step with its fake runner, recounted after every move."""

from __future__ import annotations

from collections.abc import Callable

from engine.api import FinishReason
from engine.core.parked import EndReason
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence, SeqUpdate, StepBatch
from fakes.fake_copier import FakeCopier
from fakes.fake_runner import FakeRunner, salt_of, solo_reply

End = FinishReason | EndReason


class Bench:
    """A scheduler with its runner and a clock; copies that need not land do so after `copy_steps` steps."""

    def __init__(self, scheduler: Scheduler, *, step_s: float = 1.0, copy_steps: int = 3) -> None:
        self.scheduler = scheduler
        self.runner = FakeRunner(scheduler.config)
        self.copier = FakeCopier(scheduler.config, self.runner)
        self.now_s = 0.0
        self.step_s = step_s
        self.copy_steps = copy_steps
        self.ends: dict[str, End] = {}
        self._ages: dict[int, int] = {}

    def add(self, *sequences: Sequence) -> None:
        for seq in sequences:
            self.scheduler.add(seq)

    def schedule(self) -> StepBatch:
        """Plan a step and make its copies."""
        self.now_s += self.step_s
        self._land_old()
        batch = self.scheduler.schedule(self.now_s)
        self.scheduler.check()
        self._give_back()
        for order in batch.copies:
            self.copier.issue(order)
        self.ends |= {end.seq.request_id: end.reason for end in batch.ended}
        return batch

    def compute(self, batch: StepBatch) -> tuple[SeqUpdate, ...]:
        """Run a planned step."""
        updates = self.scheduler.update(batch, self.runner.execute(batch), self.now_s)
        self.scheduler.check()
        self.ends |= {u.seq.request_id: u.finish for u in updates if u.finish}
        return updates

    def step(self) -> tuple[StepBatch, tuple[SeqUpdate, ...]]:
        batch = self.schedule()
        return batch, self.compute(batch)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step_until_parked(self) -> StepBatch:
        return self.step_until(lambda batch: bool(batch.parked))

    def step_until(self, is_it: Callable[[StepBatch], bool]) -> StepBatch:
        """Step until a batch is the one looked for; returns it."""
        for _ in range(300):
            batch, _ = self.step()
            if is_it(batch):
                return batch
        raise AssertionError("it did not happen in 300 steps")

    def run(self) -> dict[str, End]:
        """Step until all have ended; returns how."""
        for _ in range(3000):
            if self.scheduler.is_idle:
                self.land_all()
                return self.ends
            batch, _ = self.step()
            moves = batch.rows or batch.parked or batch.ended
            assert moves or batch.awaits_copies or batch.wake_s is not None, (
                f"nothing moves: {[(s.request_id, s.status) for s in self.scheduler.live]}"
            )
        raise AssertionError("not idle after 3000 steps")

    def land_all(self) -> None:
        """Every copy under way is done."""
        for copy_id in tuple(self.copier.under_way):
            self.copier.land(copy_id)
            self.scheduler.copy_landed(copy_id, self.now_s)
        self.scheduler.check()
        self._give_back()

    def _land_old(self) -> None:
        for copy_id in tuple(self.copier.under_way):
            self._ages[copy_id] = self._ages.get(copy_id, 0) + 1
            if self._ages[copy_id] >= self.copy_steps:
                self.copier.land(copy_id)
                self.scheduler.copy_landed(copy_id, self.now_s)

    def _give_back(self) -> None:
        released = self.scheduler.collect_released()
        self.runner.give_back(released)
        self.copier.give_back(released)


def reply_of(seq: Sequence) -> list[int]:
    return seq.token_ids[seq.num_prompt :]


def prompt_of(seq: Sequence) -> list[int]:
    return seq.token_ids[: seq.num_prompt]


def assert_undisturbed(*sequences: Sequence) -> None:
    """Each has ended with the reply that it gives alone."""
    for seq in sequences:
        expected, _ = solo_reply(
            prompt_of(seq), max_new=seq.max_new_tokens, ends=seq.eos_ids, salt=salt_of(seq)
        )
        assert reply_of(seq) == expected, f"{seq.request_id} said something else than alone"
