"""A head of the line that has waited is owed the room: residents give way, newcomers wait, and nobody passes it."""

from __future__ import annotations

import pytest

from engine.api import FinishReason, Priority
from engine.core.config import ParkConfig, ResumeOrder
from engine.core.parked import Fate
from engine.core.types import SeqStatus, Sequence
from engine.runs import ParkCause, ParkNow, Pin
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.rotation_bench import bench_of, endless
from fakes.stepping import Bench, assert_undisturbed


def test_a_resident_that_cycles_through_context_shifts_gives_way_after_two_seconds() -> None:
    bench = bench_of(8)
    first, second = endless(1), endless(2)
    bench.add(first)
    bench.steps(20)
    added_s = second.arrival_s = bench.now_s
    bench.add(second)
    batch = bench.step_until(lambda batch: second in batch.started)
    assert batch.parked == (first,)
    assert first.parked is not None
    assert first.parked.reason.cause is ParkCause.ROTATION
    assert first.parked.reason.for_ids == ("r2",)
    assert bench.now_s - added_s == pytest.approx(2.0, abs=0.2)


def test_long_residents_take_turns_that_grow_from_two_seconds_to_eight() -> None:
    bench = bench_of(8)
    chats = [endless(i) for i in range(2)]
    bench.add(*chats)
    waits: list[float] = []
    for _ in range(1000):
        batch, _ = bench.step()
        waits += [seq.last_park_s for seq in batch.restored]
    assert waits[:8] == pytest.approx([2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 8.0, 8.0], abs=0.2)
    assert waits[8:] == pytest.approx([8.0] * (len(waits) - 8), abs=0.2)
    counts = [seq.num_generated for seq in chats]
    assert min(counts) > max(counts) * 0.8


def test_three_in_a_pool_for_one_share_it_fairly_and_nobody_waits_longer_than_two_turns() -> None:
    bench = bench_of(8)
    chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    waits: list[float] = []
    for _ in range(1000):
        batch, _ = bench.step()
        waits += [seq.last_park_s for seq in batch.restored]
    assert max(waits) < 8.3
    assert len(waits) > 20
    counts = [seq.num_generated for seq in chats]
    assert min(counts) > max(counts) * 0.5


def test_three_endless_chats_in_a_pool_for_two_all_finish_with_what_they_say_alone() -> None:
    bench = bench_of(12)
    chats = [make_sequence(8, arrival=i, max_new=700, keep_tokens=2) for i in range(3)]
    bench.add(*chats)
    assert set(bench.run().values()) == {FinishReason.LENGTH}
    assert all(seq.num_parks and seq.num_discarded for seq in chats)


def test_the_head_is_not_let_in_before_it_is_owed_if_it_would_be_parked_again() -> None:
    bench = bench_of(18, park=in_place(rotate_after_s=1e9))
    chats = [make_sequence(8, arrival=i, max_new=24) for i in range(3)]
    bench.add(*chats)
    bench.run()
    assert sum(seq.num_parks for seq in chats) == 1


@pytest.mark.parametrize("overflow", [2, 8])
def test_projection_keeps_the_number_of_parks_small(overflow: int) -> None:
    """Four chats that overflow the pool by some pages; with every return that fits it would be dozens."""
    park = in_place(rotate_after_s=1e9)
    bench = bench_of(4 * 10 - overflow, park=park)
    chats = [make_sequence(16, arrival=i, max_new=24) for i in range(4)]
    bench.add(*chats)
    bench.run()
    assert 1 <= sum(seq.num_parks for seq in chats) <= 4


def test_one_that_has_just_come_back_is_not_rotated_straight_out() -> None:
    bench = bench_of(8, step_s=0.01)
    chats = [endless(i) for i in range(2)]
    bench.add(*chats)
    came_back: dict[Sequence, tuple[int, float]] = {}
    rotated = 0
    for _ in range(2000):
        batch, _ = bench.step()
        for seq in batch.restored:
            came_back[seq] = (seq.num_generated, bench.now_s)
        for seq in batch.parked:
            rotated += 1
            if seq in came_back:
                tokens, since_s = came_back[seq]
                done = seq.num_generated - tokens
                assert done >= 32 or bench.now_s - since_s >= 2.0
    assert rotated > 5


def test_newcomers_however_short_wait_for_the_aged_head() -> None:
    bench = bench_of(14)
    bench.add(*(make_sequence(8, arrival=i, max_new=48) for i in range(2)))
    bench.step_until_parked()
    head = bench.scheduler.line(SeqStatus.PARKED)[0]
    for arrival in range(10, 30):
        bench.add(make_sequence(1, arrival=arrival, max_new=1))
        batch, _ = bench.step()
        if batch.restored:
            break
        assert batch.started == ()
    assert head.status is SeqStatus.RUNNING


def test_without_room_in_the_budget_a_resident_gives_way_by_recompute_after_half_a_minute() -> None:
    bench = bench_of(8, park=in_place(1), step_s=2.0)
    chats = [make_sequence(12, arrival=i, max_new=20) for i in range(2)]
    bench.add(*chats)
    batch = bench.step_until_parked()
    assert batch.parked == (chats[0],)
    assert bench.now_s == pytest.approx(30.0, abs=2.0)
    assert chats[0].parked is not None
    assert chats[0].parked.fate is Fate.RECOMPUTE
    bench.run()
    assert_undisturbed(*chats)


def test_no_credit_is_given_for_what_the_head_will_free() -> None:
    """The budget holds one state, the head's: for half a minute the resident is not parked beside it."""
    bench = bench_of(8, park=in_place(3), step_s=2.0)
    chats = [make_sequence(12, arrival=i, max_new=20) for i in range(2)]
    bench.add(*chats)
    assert bench.step_until_parked().parked == (chats[0],)
    parked_s = bench.now_s
    assert bench.scheduler.park_usage().used_bytes == 3
    assert bench.step_until_parked().parked == (chats[1],)
    assert bench.now_s - parked_s == pytest.approx(30.0, abs=2.0)
    bench.run()
    assert_undisturbed(*chats)


def test_right_after_a_context_shift_a_resident_loses_nothing_and_gives_way_at_once() -> None:
    bench = bench_of(8, park=in_place(1), step_s=0.5)
    chats = [endless(i, prompt=12) for i in range(2)]
    bench.add(*chats)
    batch = bench.step_until_parked()
    assert batch.parked == (chats[0],)
    assert 2.0 < bench.now_s < 15.0
    assert chats[0].num_computed == 0


def test_the_pinned_do_not_give_way() -> None:
    bench = bench_of(8)
    first, second = endless(1), endless(2)
    bench.add(first)
    bench.step()
    bench.scheduler.steer(Pin(request_id="r1"), bench.now_s)
    bench.add(second)
    bench.steps(200)
    assert second.status is SeqStatus.WAITING
    bench.scheduler.steer(Pin(request_id="r1", is_pinned=False), bench.now_s)
    bench.step()
    assert second.status is SeqStatus.RUNNING


def test_the_less_important_do_not_send_the_more_important_out_before_long() -> None:
    bench = bench_of(8)
    chat = endless(1, priority=Priority.INTERACTIVE)
    job = endless(2, priority=Priority.BACKGROUND)
    bench.add(chat)
    bench.step()
    bench.add(job)
    bench.steps(500)
    assert job.status is SeqStatus.WAITING
    bench.step_until(lambda batch: job in batch.started)
    assert bench.now_s == pytest.approx(60.0, abs=1.0)


def test_an_important_newcomer_goes_before_a_less_important_parked_one() -> None:
    bench = bench_of(14)
    jobs = [endless(i, priority=Priority.BACKGROUND) for i in range(2)]
    bench.add(*jobs)
    bench.step_until_parked()
    chat = make_sequence(4, arrival=9, max_new=4, priority=Priority.INTERACTIVE)
    chat.arrival_s = bench.now_s
    bench.add(chat)
    assert bench.scheduler.explain().place(chat) == 1
    batch = bench.step_until(lambda batch: bool(batch.started or batch.restored))
    assert batch.started == (chat,)


def test_who_has_waited_longer_by_some_seconds_goes_first_whatever_the_policy_says() -> None:
    """Otherwise old chats that keep taking turns would keep the newest out for ever."""
    bench = bench_of(8, step_s=0.5)
    chats = [endless(i) for i in range(4)]
    bench.add(*chats)
    longest = 0.0
    for _ in range(600):
        batch, _ = bench.step()
        longest = max([longest, *(seq.last_park_s for seq in batch.restored)])
    assert longest < 12.0
    counts = [seq.num_generated for seq in chats]
    assert min(counts) > max(counts) * 0.6


@pytest.mark.parametrize(("order", "passes"), [(ResumeOrder.HEAD, False), (ResumeOrder.PASS, True)])
def test_where_passing_is_allowed_a_small_one_goes_before_a_large_head(
    order: ResumeOrder, *, passes: bool
) -> None:
    park = ParkConfig(resume_order=order, rotate_after_s=1e9)
    bench = Bench(make_scheduler(24, page_tokens=4, park=park))
    stays, large, small = (
        make_sequence(n, arrival=i, max_new=m)
        for i, (n, m) in enumerate(((20, 40), (28, 40), (4, 6)))
    )
    bench.add(stays, small, large)
    bench.steps(2)
    for seq in (large, small):
        bench.scheduler.steer(ParkNow(request_id=seq.request_id), bench.now_s)
    bench.step_until(lambda batch: len(stays.token_ids) >= 50)
    large.is_held = small.is_held = False
    bench.step()
    assert large.status is SeqStatus.PARKED
    assert (small.status is SeqStatus.RUNNING) is passes
    bench.run()
    assert_undisturbed(stays, large, small)
