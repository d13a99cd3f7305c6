"""A loaded model whose steps are made one by one, by hand, with a stopwatch in each part of them.

The scheduler, the stepper, the sampler and the back end are the engine's own; what is missing is its thread. All on the
caller's thread, which therefore calls torch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from engine.api import LoadModel, LoadOptions, Origin, Request, SamplingParams, TokenIds
from engine.core.config import PAGE_TOKENS
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence, StepBatch
from engine.runs import SteeringCommand
from engine.runtime.compute import Compute
from engine.runtime.intake import Prepared
from engine.runtime.live_request import LiveRequest
from engine.runtime.loaded_model import LoadedModel
from engine.runtime.rate_meter import RateMeter
from engine.runtime.stepper import Stepper
from kernels.api import StepInputs
from kernels.wishes import Found

_MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step: its rows as (tokens held before, tokens computed), and where its seconds went."""

    rows: tuple[tuple[int, int], ...]
    step_s: float
    run_s: float
    """In the back end's run."""
    plan_s: float
    """In the scheduler's plan, parks and restores in place included."""
    num_copied: int = 0
    """Pages copied out of the pool and back."""

    @property
    def is_decode(self) -> bool:
        return all(count == 1 for _, count in self.rows)

    @property
    def num_tokens(self) -> int:
        return sum(count for _, count in self.rows)


class _WatchedCompute:
    """Implements `compute.Compute` by another one, and remembers how long its latest run took."""

    def __init__(self, inner: Compute) -> None:
        self._inner = inner
        self.kernels = inner.kernels
        self.compute_id = inner.compute_id
        self.inexact_ops = inner.inexact_ops
        self.is_finite = inner.is_finite
        self.mover = inner.mover
        self.run_s = 0.0

    def run(self, inputs: StepInputs) -> np.ndarray:
        start = time.perf_counter()
        logits = self._inner.run(inputs)
        self.run_s = time.perf_counter() - start
        return logits

    def found(self) -> Seq[Found]:
        return self._inner.found()

    @property
    def threads(self) -> int:
        return self._inner.threads

    def set_threads(self, threads: int) -> None:
        self._inner.set_threads(threads)

    def close(self) -> None:
        self._inner.close()


class _WatchedScheduler(Scheduler):
    """Remembers its latest plan, and how long it took."""

    plan_s = 0.0
    batch: StepBatch | None = None

    def schedule(self, now_s: float, *, beside_replies: int | None = None) -> StepBatch:
        start = time.perf_counter()
        self.batch = super().schedule(now_s, beside_replies=beside_replies)
        self.plan_s = time.perf_counter() - start
        return self.batch


class StepRig:
    """Made by `open_rig`."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self._compute = model.runner.wrap_compute(_WatchedCompute)
        self.scheduler = _WatchedScheduler(model.scheduler.config)
        model.scheduler = self.scheduler
        self._live: dict[str, LiveRequest] = {}
        self.num_added = 0
        """Requests so far."""
        self._stepper = Stepper(model, self._live, RateMeter(), time.perf_counter)

    @property
    def window_tokens(self) -> int:
        return self.model.runner.window_tokens

    @property
    def page_bytes(self) -> int:
        return self.model.runner.page_bytes

    @property
    def token_bytes(self) -> int:
        return self.page_bytes // PAGE_TOKENS

    def add(self, num_prompt: int, num_reply: int, *, seed: int) -> Sequence:
        """Put a request in line whose prompt is made of dice; the same seed makes the same prompt.

        Raises RequestError when it does not fit.
        """
        dice = Random(seed)
        size = self.model.tokenizer.vocab_size  # control tokens are its first or its last ones
        ids = tuple(dice.randrange(size // 4, size // 2) for _ in range(num_prompt))
        self.num_added += 1
        request = Request(
            request_id=f"bench{self.num_added}",
            origin=Origin.API,
            prompt=TokenIds(ids=ids),
            sampling=SamplingParams(temperature=0.0, seed=seed),
            max_tokens=num_reply,
            ignore_eos=True,
        )
        live = LiveRequest(request, self.num_added, time.perf_counter())
        live.generation = self.model.generation(live, Prepared(request.request_id, ids))
        self._live[request.request_id] = live
        self._stepper.add(live)
        return live.generation.seq

    def step(self) -> StepTime:
        """Make one step."""
        self._compute.run_s = 0.0  # a step without rows runs nothing
        start = time.perf_counter()
        self._stepper.step()
        step_s = time.perf_counter() - start
        batch = self.scheduler.batch
        assert batch is not None
        rows = tuple((row.start, row.count) for row in batch.rows)
        num_copied = sum(len(order.pages) for order in batch.copies)
        return StepTime(rows, step_s, self._compute.run_s, self.scheduler.plan_s, num_copied)

    def read_prompts(self) -> list[StepTime]:
        """Step until everybody is past the prompt and in the pool; these steps."""
        steps: list[StepTime] = []
        while not all(seq.is_generating for seq in self.scheduler.live):
            assert len(steps) < _MOST_STEPS, "somebody never comes in"
            steps.append(self.step())
        return steps

    def steer(self, command: SteeringCommand) -> None:
        """As a person would, in effect from the next step."""
        self.model.steer(command, time.perf_counter())

    def end(self, seq: Sequence) -> None:
        """End somebody; what it held stays to be found again."""
        self.scheduler.abort(seq.request_id, time.perf_counter())
        self._live.pop(seq.request_id, None)

    def clear(self) -> None:
        """End everybody."""
        for seq in self.scheduler.live:
            self.end(seq)
        self._stepper.give_back()


@contextmanager
def open_rig(path: Path, options: LoadOptions) -> Iterator[StepRig]:
    """A model loaded for measuring, freed at the end. Raises what `LoadedModel.load` raises."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the engine has it
    command = LoadModel(path=path, name=path.stem, options=options)
    model = LoadedModel.load(command, lambda share: None, lambda done: None)
    try:
        yield StepRig(model)
    finally:
        model.close()
