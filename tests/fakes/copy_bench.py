"""A bench with two sequences that are parked and brought back by hand."""

from __future__ import annotations

from dataclasses import replace

from engine.core.config import ParkConfig
from engine.core.parked import PageCopy
from engine.core.types import Sequence, StepBatch
from engine.runs import ParkNow, ResumeNext
from fakes.builders import make_scheduler, make_sequence
from fakes.stepping import Bench


def bench_of(park: ParkConfig, *, pages: int = 24, copy_steps: int = 3) -> Bench:
    """A pool of pages of four tokens in which nobody is rotated."""
    park = replace(park, rotate_after_s=1e9)
    return Bench(make_scheduler(pages=pages, page_tokens=4, park=park), copy_steps=copy_steps)


def two(bench: Bench, *, max_new: int = 30) -> tuple[Sequence, Sequence]:
    """Two sequences in the pool, past their prompts."""
    old, new = (make_sequence(8, arrival=i, max_new=max_new) for i in (1, 2))
    bench.add(old, new)
    bench.steps(2)
    return old, new


def park(bench: Bench, seq: Sequence) -> StepBatch:
    """Park it by hand; the batch that does so, its step done."""
    bench.scheduler.steer(ParkNow(request_id=seq.request_id), bench.now_s)
    return bench.step()[0]


def resume(bench: Bench, seq: Sequence) -> StepBatch:
    bench.scheduler.steer(ResumeNext(request_id=seq.request_id), bench.now_s)
    return bench.step()[0]


def only_copy(batch: StepBatch) -> PageCopy:
    (order,) = batch.copies
    return order
