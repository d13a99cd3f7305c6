"""Prompts whose outputs are wanted: each output comes once and in order, whatever is parked meanwhile."""

from __future__ import annotations

import random

import pytest

from engine.core.config import ParkConfig
from engine.core.types import Sequence, StepBatch
from engine.runs import ParkNow, ResumeNext
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed

WAYS: dict[str, ParkConfig] = {
    "dropped": ParkConfig(budget_bytes=-1),
    "in place": in_place(),
    "copied": copied(),
    "copied beside the steps": copied(is_async=True),
    "little room": copied(budget_pages=2),
}


def read_whole(
    seq: Sequence, *, first: int = 0, until: int | None = None, most: int | None = None
) -> None:
    seq.num_read, seq.read_until = first, seq.num_prompt if until is None else until
    seq.read_tokens = most


def taken(batch: StepBatch) -> list[tuple[Sequence, range]]:
    """The positions whose outputs a step gives to those who want them."""
    found = []
    for row in batch.rows:
        stop = row.start + row.count
        if row.num_outputs and row.seq.is_being_read:
            assert row.num_outputs == row.count, "all of a row, or none"
            found.append((row.seq, range(max(row.start, row.seq.num_read), stop)))
        else:
            assert row.num_outputs == int(row.samples)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_each_output_comes_once_and_in_order(way: str, seed: int) -> None:
    chance = random.Random(seed)
    bench = Bench(make_scheduler(pages=14, step_tokens=16, park=WAYS[way]))
    shared = list(range(1000, 1012))
    sequences = []
    for arrival in range(7):
        prompt = [*shared, *range(arrival * 50, arrival * 50 + chance.randint(1, 14))]
        seq = make_sequence(prompt, arrival=arrival, max_new=chance.choice((0, 6)))
        kind = chance.randrange(4)
        if kind == 0:
            read_whole(seq, most=1, until=seq.num_prompt - 1)
        elif kind == 1:
            read_whole(seq)
        elif kind == 2:
            read_whole(seq, first=seq.num_prompt - 1)
        sequences.append(seq)
    wanted = {seq.request_id: list(range(seq.num_read, seq.read_until)) for seq in sequences}
    got: dict[str, list[int]] = {seq.request_id: [] for seq in sequences}
    bench.add(*sequences)
    for _ in range(400):
        if bench.scheduler.is_idle:
            break
        if chance.random() < 0.3:
            command = chance.choice((ParkNow, ResumeNext))
            bench.scheduler.steer(command(request_id=f"r{chance.randrange(7)}"), bench.now_s)
        if chance.random() < 0.5:
            for seq in bench.scheduler.live:
                bench.scheduler.steer(ResumeNext(request_id=seq.request_id), bench.now_s)
        batch = bench.schedule()
        for seq, positions in taken(batch):
            got[seq.request_id] += [place for place in positions if place < seq.read_until]
            assert seq.read_tokens is None or len(positions) <= 1
        bench.compute(batch)
    assert bench.scheduler.is_idle
    assert got == wanted
    bench.land_all()
    assert_undisturbed(*sequences)


def test_pages_of_others_are_taken_only_as_far_as_no_output_is_wanted() -> None:
    bench = Bench(make_scheduler(pages=30, page_tokens=4))
    prompt = list(range(18))
    bench.add(make_sequence(prompt, arrival=0, max_new=1))
    bench.run()
    every, last, none = (make_sequence(prompt, arrival=n, max_new=1) for n in (1, 2, 3))
    read_whole(every)
    read_whole(last, first=17)
    bench.add(every, last, none)
    bench.run()
    assert (every.num_cached, last.num_cached, none.num_cached) == (0, 16, 16)


def test_one_that_is_read_token_by_token_leaves_the_step_to_others() -> None:
    bench = Bench(make_scheduler(pages=30, step_tokens=16))
    slow, fast = make_sequence(20, arrival=0, max_new=0), make_sequence(20, arrival=1, max_new=1)
    read_whole(slow, most=1)
    bench.add(slow, fast)
    batch, _ = bench.step()
    assert [(row.seq, row.count) for row in batch.rows] == [(slow, 1), (fast, 15)]
