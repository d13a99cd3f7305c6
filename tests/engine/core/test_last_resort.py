"""A step that finds no memory after all is planned anew; knobs for tests; and what a full window does."""

from __future__ import annotations

import pytest

from engine.api import FinishReason
from engine.core.config import Knobs, ParkConfig
from engine.core.parked import EndReason, Fate
from engine.core.types import SeqStatus
from engine.runs import ParkCause
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.fake_runner import solo_reply
from fakes.stepping import Bench, assert_undisturbed, prompt_of

PARKS = [
    pytest.param(ParkConfig(), id="recompute"),
    pytest.param(in_place(), id="in place"),
    pytest.param(copied(), id="copied"),
    pytest.param(copied(is_async=True), id="copied beside steps"),
]


# --- no memory after all


def test_rows_are_rewound_and_somebody_is_parked_and_the_others_go_on() -> None:
    bench = Bench(make_scheduler(24, park=in_place()))
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    bench.step()
    before = [(seq.num_computed, len(seq.token_ids)) for seq in sequences[:2]]
    batch = bench.scheduler.last_resort(bench.schedule(), bench.now_s)
    bench.scheduler.check()
    assert batch.parked == (sequences[2],)
    assert sequences[2].parked is not None
    assert sequences[2].parked.reason.cause is ParkCause.LAST_RESORT
    assert [row.seq for row in batch.rows] == sequences[:2]
    assert [(row.start, len(row.seq.token_ids)) for row in batch.rows] == before
    bench.compute(batch)
    bench.run()
    assert bench.scheduler.park_usage().num_last_resorts == 1
    assert_undisturbed(*sequences)


def test_where_parks_move_no_bytes_the_state_is_dropped_since_memory_is_what_lacks() -> None:
    bench = Bench(make_scheduler(24, park=in_place()))
    bench.add(*(make_sequence(8, arrival=i, max_new=20) for i in range(2)))
    bench.step()
    batch = bench.scheduler.last_resort(bench.schedule(), bench.now_s)
    (gone,) = batch.parked
    assert gone.parked is not None
    assert gone.parked.fate is Fate.RECOMPUTE
    assert bench.scheduler.pool.num_parked == 0


def test_prefixes_that_nobody_uses_are_forgotten_before_anybody_is_parked() -> None:
    bench = Bench(make_scheduler(24, park=in_place()))
    bench.add(make_sequence(range(500, 520), arrival=0, max_new=1))
    bench.run()
    assert bench.scheduler.pool.usage().reusable_pages == 5
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in (1, 2)]
    bench.add(*sequences)
    batch = bench.scheduler.last_resort(bench.schedule(), bench.now_s)
    assert batch.parked == ()
    assert bench.scheduler.pool.usage().reusable_pages == 0
    assert [row.seq for row in batch.rows] == sequences


def test_one_alone_ends_and_everybody_in_line_goes_on() -> None:
    bench = Bench(make_scheduler(24, max_running=1, park=in_place()))
    first, second = (make_sequence(8, arrival=i, max_new=4) for i in range(2))
    bench.add(first, second)
    batch = bench.scheduler.last_resort(bench.schedule(), bench.now_s)
    assert [(end.seq, end.reason) for end in batch.ended] == [(first, EndReason.POOL_FULL)]
    assert batch.rows == ()
    assert bench.run() == {"r1": FinishReason.LENGTH}


def test_with_parking_off_the_newest_ends() -> None:
    bench = Bench(make_scheduler(24, park=ParkConfig(budget_bytes=0)))
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in range(2)]
    bench.add(*sequences)
    bench.step()
    batch = bench.scheduler.last_resort(bench.schedule(), bench.now_s)
    assert [(end.seq, end.reason) for end in batch.ended] == [(sequences[1], EndReason.POOL_FULL)]
    assert [row.seq for row in batch.rows] == sequences[:1]


@pytest.mark.parametrize("park", PARKS)
def test_last_resorts_at_any_moment_change_no_reply(park: ParkConfig) -> None:
    bench = Bench(make_scheduler(24, park=park))
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in range(4)]
    bench.add(*sequences)
    for step in range(1000):
        if bench.scheduler.is_idle:
            break
        batch = bench.schedule()
        if step % 5 == 3 and bench.scheduler.num_running > 1:
            batch = bench.scheduler.last_resort(batch, bench.now_s)
            for order in batch.copies:
                bench.copier.issue(order)
        bench.compute(batch)
    assert bench.scheduler.is_idle
    assert bench.scheduler.park_usage().num_last_resorts >= 3
    assert_undisturbed(*sequences)


# --- knobs


@pytest.mark.parametrize("park", PARKS)
def test_without_a_planner_a_step_that_finds_no_page_parks_somebody(park: ParkConfig) -> None:
    bench = Bench(make_scheduler(12, park=park, knobs=Knobs(is_planner_on=False)))
    sequences = [make_sequence(8, arrival=i, max_new=30) for i in range(2)]
    bench.add(*sequences)
    batch = bench.step_until_parked()
    assert batch.parked[0].parked is not None
    assert batch.parked[0].parked.reason.cause is ParkCause.LAST_RESORT
    assert bench.scheduler.park_usage().num_last_resorts >= 1
    bench.run()
    assert_undisturbed(*sequences)


@pytest.mark.parametrize("park", PARKS)
@pytest.mark.parametrize("every", [1, 8])
def test_parks_forced_every_so_many_tokens_change_no_reply(park: ParkConfig, every: int) -> None:
    bench = Bench(make_scheduler(24, park=park, knobs=Knobs(park_every_tokens=every)))
    seq = make_sequence(9, max_new=33)
    bench.add(seq)
    bench.run()
    assert seq.num_parks == 32 // every
    assert_undisturbed(seq)


def test_a_coarser_granularity_parks_earlier_and_changes_no_reply() -> None:
    parks = {}
    for block in (0, 16):
        knobs = Knobs(granularity_tokens=block)
        bench = Bench(make_scheduler(18, park=in_place(rotate_after_s=1e9), knobs=knobs))
        sequences = [make_sequence(8, arrival=i, max_new=26) for i in range(2)]
        bench.add(*sequences)
        bench.run()
        parks[block] = sum(seq.num_parks for seq in sequences)
        assert_undisturbed(*sequences)
    assert parks == {0: 0, 16: 1}


def test_a_sequence_that_no_coarse_plan_holds_runs_alone_all_the_same() -> None:
    bench = Bench(make_scheduler(5, park=in_place(), knobs=Knobs(granularity_tokens=16)))
    seq = make_sequence(8, max_new=12)
    bench.add(seq)
    assert bench.run() == {"r0": FinishReason.LENGTH}


# --- a full window


@pytest.mark.parametrize("keep", [0, 3, 100])
@pytest.mark.parametrize("park", PARKS)
def test_a_context_that_is_shifted_goes_on_from_the_tokens_it_keeps(
    park: ParkConfig, keep: int
) -> None:
    bench = Bench(make_scheduler(12, park=park), step_s=0.1)
    sequences = [make_sequence(8, arrival=i, max_new=300, keep_tokens=keep) for i in range(2)]
    prompts = [prompt_of(seq) for seq in sequences]
    bench.add(*sequences)
    replies: dict[str, list[int]] = {seq.request_id: [] for seq in sequences}
    while not bench.scheduler.is_idle:
        for update in bench.step()[1]:
            if update.token_id is not None:
                replies[update.seq.request_id].append(update.token_id)
    for seq, prompt in zip(sequences, prompts, strict=True):
        expected, _ = solo_reply(prompt, max_new=300, limit=48, keep=keep)
        assert replies[seq.request_id] == expected
        assert seq.num_generated == 300


def test_a_prompt_that_fills_the_window_is_not_shifted_before_it_is_read() -> None:
    bench = Bench(make_scheduler(4, step_tokens=4))
    seq = make_sequence(16, max_new=3, keep_tokens=0)
    bench.add(seq)
    replies = [u.token_id for _ in range(20) for u in bench.step()[1] if u.token_id is not None]
    assert replies == solo_reply(range(16), max_new=3, limit=16, keep=0)[0]


def test_pages_of_the_kept_beginning_are_found_again_after_a_shift() -> None:
    bench = Bench(make_scheduler(8))
    seq = make_sequence(9, max_new=100, keep_tokens=8)
    bench.add(seq)
    batch = bench.step_until(lambda batch: seq.num_discarded > 0)
    batch, _ = bench.step()
    assert seq.status is SeqStatus.RUNNING
    assert batch.rows[0].start in (0, 8)
