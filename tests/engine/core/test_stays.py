"""Sequences that have ended and stay for their owner: who gets their room, when, and how one that follows goes on."""

from __future__ import annotations

import pytest

from engine.api import Stay
from engine.core.config import ParkConfig
from engine.core.parked import Fate
from engine.core.scheduler import Scheduler
from engine.core.types import SeqStatus, Sequence
from engine.runs import ParkNow, ResumeNext, RunState, WaitKind
from fakes.builders import copied, in_place, make_scheduler, make_sequence

GRACE_S = 10.0


def step(scheduler: Scheduler, now_s: float = 0.0) -> None:
    """One step; copies that it orders are made at once."""
    batch = scheduler.schedule(now_s)
    scheduler.update(batch, [7] * len(batch.sampling_rows), now_s)
    for copy in batch.copies:
        scheduler.copy_landed(copy.copy_id, now_s)


def stayer(prompt: int = 6, *, max_new: int = 3, arrival: int = 0) -> Sequence:
    seq = make_sequence(prompt, arrival=arrival, max_new=max_new)
    seq.stay = Stay(grace_s=GRACE_S, longest_s=100.0)
    return seq


def with_one_that_stays(**options: object) -> tuple[Scheduler, Sequence]:
    """Six tokens of prompt and three of reply, the last of them not computed: two pages of four."""
    scheduler, seq = make_scheduler(**options), stayer()  # type: ignore[arg-type]
    scheduler.add(seq)
    for _ in range(3):
        step(scheduler)
    assert seq.status is SeqStatus.STAYING
    return scheduler, seq


def following(seq: Sequence, *, arrival: int = 50, max_new: int = 4) -> Sequence:
    return make_sequence([*seq.token_ids, 3, 4], arrival=arrival, max_new=max_new)


def test_one_that_stays_keeps_its_pages_and_no_seat() -> None:
    scheduler, seq = with_one_that_stays(max_running=1)
    assert (scheduler.num_running, scheduler.num_parked) == (0, 0)
    assert len(seq.page_table) == 2
    assert scheduler.explain().state(seq) is RunState.AWAITS_OWNER
    assert scheduler.explain().wait_reason(seq) is None
    other = make_sequence(5, arrival=1)
    scheduler.add(other)
    step(scheduler)
    assert other.status is SeqStatus.RUNNING
    scheduler.check()


def test_without_being_asked_to_stay_nobody_does() -> None:
    scheduler, seq = make_scheduler(), make_sequence(6, max_new=1)
    scheduler.add(seq)
    step(scheduler)
    assert seq.has_ended
    assert scheduler.is_idle


@pytest.mark.parametrize(
    ("park", "fate"),
    [(in_place(), Fate.SWAP), (copied(), Fate.SWAP), (ParkConfig(), Fate.RECOMPUTE)],
    ids=["in place", "copied", "dropped"],
)
def test_after_the_grace_its_room_is_lent_out(park: ParkConfig, fate: Fate) -> None:
    scheduler, seq = with_one_that_stays(park=park)
    assert scheduler.schedule(GRACE_S - 1).wake_s == GRACE_S
    assert seq.status is SeqStatus.STAYING
    step(scheduler, GRACE_S)
    assert seq.status is SeqStatus.PARKED
    assert seq.parked is not None
    assert seq.parked.fate is fate
    usage = scheduler.pool.usage()
    assert usage.free_pages + usage.reusable_pages == usage.total_pages
    reason = scheduler.explain().wait_reason(seq)
    assert reason is not None
    assert (reason.kind, reason.place) == (WaitKind.OWNER, 0)
    assert scheduler.num_parked == 0
    scheduler.check()


def test_it_leaves_before_anybody_who_runs() -> None:
    scheduler, seq = with_one_that_stays(pages=12, park=in_place())
    others = [make_sequence(5, arrival=n, max_new=24) for n in (1, 2)]
    for other in others:
        scheduler.add(other)
    for _ in range(18):
        step(scheduler)
    assert seq.status is SeqStatus.PARKED
    assert all(other.num_parks == 0 for other in others)
    assert [other.status for other in others] == [SeqStatus.RUNNING] * 2


def test_a_newcomer_does_not_wait_for_one_that_stays_where_nobody_runs() -> None:
    scheduler, seq = with_one_that_stays(pages=3, park=in_place())
    scheduler.add(other := make_sequence(8, arrival=1))
    step(scheduler)
    assert (seq.status, other.status) == (SeqStatus.PARKED, SeqStatus.RUNNING)


def test_beside_others_who_run_a_newcomer_waits_until_it_is_owed_the_room() -> None:
    scheduler, seq = with_one_that_stays(pages=8, park=in_place())
    scheduler.add(make_sequence(8, arrival=1, max_new=1000))
    step(scheduler)
    scheduler.add(new := make_sequence(9, arrival=2))
    step(scheduler)
    assert (seq.status, new.status) == (SeqStatus.STAYING, SeqStatus.WAITING)
    step(scheduler, 2.5)
    assert (seq.status, new.status) == (SeqStatus.PARKED, SeqStatus.RUNNING)


def test_the_longest_time_ends_it() -> None:
    scheduler, seq = with_one_that_stays(park=in_place())
    step(scheduler, 50.0)
    assert scheduler.schedule(60.0).wake_s == 100.0
    step(scheduler, 100.0)
    assert seq.has_ended
    assert scheduler.is_idle
    assert scheduler.park_usage().used_bytes == 0


@pytest.mark.parametrize("is_lent", [False, True])
@pytest.mark.parametrize("park", [in_place(), copied(), ParkConfig()])
def test_an_abort_leaves_nothing(park: ParkConfig, *, is_lent: bool) -> None:
    scheduler, seq = with_one_that_stays(park=park)
    if is_lent:
        step(scheduler, 50.0)
    scheduler.abort(seq.request_id, 51.0)
    scheduler.collect_released()
    assert scheduler.is_idle
    assert scheduler.park_usage().used_bytes == 0
    assert not scheduler.pool.num_parked
    scheduler.check()


@pytest.mark.parametrize("is_lent", [False, True], ids=["in the grace", "lent out"])
@pytest.mark.parametrize("park", [in_place(), copied()], ids=["in place", "copied"])
def test_one_that_follows_reads_only_what_is_new(park: ParkConfig, *, is_lent: bool) -> None:
    scheduler, seq = with_one_that_stays(park=park)
    if is_lent:
        step(scheduler, 50.0)
    new = following(seq)
    scheduler.follow(new, seq.request_id, 51.0)
    assert seq.has_ended
    assert scheduler.explain().state(new) is RunState.QUEUED
    batch = scheduler.schedule(51.0)
    (row,) = batch.rows
    assert (row.start, row.count) == (8, 3), (
        "the token that ended the reply, and the two that are new"
    )
    assert batch.started == (new,)
    assert not batch.restored
    assert new.num_cached == 8
    scheduler.check()


def test_where_the_state_was_dropped_all_is_read_again() -> None:
    scheduler, seq = with_one_that_stays()
    step(scheduler, 50.0)
    scheduler.pool.purge()
    new = following(seq)
    scheduler.follow(new, seq.request_id, 51.0)
    (row,) = scheduler.schedule(51.0).rows
    assert (row.start, row.count) == (0, 11)


def test_tokens_that_differ_are_read_again_from_their_page_on() -> None:
    scheduler, seq = with_one_that_stays(park=in_place())
    new = make_sequence([*seq.token_ids[:6], 77, 78, 79], arrival=50)
    scheduler.follow(new, seq.request_id, 1.0)
    (row,) = scheduler.schedule(1.0).rows
    assert (row.start, row.count) == (4, 5)
    scheduler.check()


def test_one_that_follows_goes_before_the_whole_line() -> None:
    scheduler, seq = with_one_that_stays(max_running=1, park=in_place())
    scheduler.add(first := make_sequence(5, arrival=1, max_new=50))
    step(scheduler)
    scheduler.add(second := make_sequence(5, arrival=2))
    step(scheduler, 50.0)
    scheduler.follow(new := following(seq), seq.request_id, 51.0)
    assert scheduler.explain().place(new) == 1
    assert scheduler.explain().place(second) == 2
    step(scheduler, 51.0)
    step(scheduler, 51.1)
    assert (new.status, first.status) == (SeqStatus.RUNNING, SeqStatus.PARKED)
    assert second.status is SeqStatus.WAITING


def test_to_follow_somebody_unknown_is_to_stand_in_line() -> None:
    scheduler = make_scheduler()
    scheduler.follow(seq := make_sequence(5), "nobody", 0.0)
    assert seq.status is SeqStatus.WAITING
    step(scheduler)
    assert seq.status is SeqStatus.RUNNING


def test_nobody_who_has_ended_can_be_called_back_by_hand() -> None:
    scheduler, seq = with_one_that_stays()
    assert not scheduler.steer(ResumeNext(request_id=seq.request_id), 1.0)
    assert not scheduler.steer(ParkNow(request_id=seq.request_id), 1.0)
    assert seq.status is SeqStatus.STAYING


def test_a_follower_can_stay_in_its_turn() -> None:
    scheduler, seq = with_one_that_stays(park=in_place())
    new = following(seq, max_new=2)
    new.stay = seq.stay
    scheduler.follow(new, seq.request_id, 1.0)
    step(scheduler, 1.0)
    step(scheduler, 1.0)
    assert new.status is SeqStatus.STAYING
    assert new.stays_since_s == 1.0
