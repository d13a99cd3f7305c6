"""Siblings (n > 1): one prompt's pages for all, parked all or none, and only they end if they outgrow the pool."""

from __future__ import annotations

import pytest

from engine.api import FinishReason
from engine.core.config import Knobs, ParkConfig
from engine.core.parked import EndReason, Fate
from engine.core.types import Family, SeqStatus, Sequence
from engine.runs import ParkNow, Pin, ResumeNext, WaitKind
from fakes.builders import copied, in_place, make_family, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed


def bench_of(
    pages: int = 24, *, park: ParkConfig | None = None, knobs: Knobs | None = None
) -> Bench:
    park = in_place(rotate_after_s=1e9) if park is None else park
    return Bench(make_scheduler(pages, page_tokens=4, max_running=6, park=park, knobs=knobs))


def statuses(family: tuple[Sequence, ...]) -> set[SeqStatus]:
    return {seq.status for seq in family}


def test_siblings_share_the_pages_of_their_prompt_and_compute_it_once() -> None:
    bench = bench_of()
    family = make_family(3, 18, max_new=6)
    bench.add(*family)
    computed = 0
    while not bench.scheduler.is_idle:
        batch, _ = bench.step()
        computed += batch.num_tokens
        tables = [seq.page_table[:4] for seq in family if len(seq.page_table) > 4]
        assert all(table == tables[0] for table in tables)
    assert computed == 18 + 2 * 2 + 3 * 5  # two tokens of the prompt do not fill a page
    assert_undisturbed(*family)


def test_a_sibling_waits_for_the_prompt_without_holding_a_page() -> None:
    bench = Bench(make_scheduler(24, page_tokens=4, step_tokens=8, park=in_place()))
    family = make_family(2, 30)
    bench.add(*family)
    bench.step_until(lambda batch: family[1] in batch.started)
    table = family[1].page_table
    assert table == family[0].page_table[: len(table)]
    bench.run()
    assert_undisturbed(*family)


def test_siblings_must_have_one_prompt() -> None:
    with pytest.raises(ValueError, match="siblings must have the same prompt"):
        Family.unite([make_sequence(4, arrival=1), make_sequence(4, arrival=2)])


@pytest.mark.parametrize("park", [in_place(), copied(), copied(is_async=True), ParkConfig()])
def test_siblings_are_parked_together_and_come_back_together(park: ParkConfig) -> None:
    bench = bench_of(22, park=park)
    old = make_sequence(8, arrival=0, max_new=60)
    family = make_family(3, 10, arrival=1, max_new=20)
    bench.add(old, *family)
    parks = 0
    for _ in range(400):
        batch = bench.schedule()
        alive = [seq for seq in family if seq.status is not SeqStatus.FINISHED]
        started = [seq for seq in alive if seq.status is not SeqStatus.WAITING]
        assert len({seq.status for seq in started}) <= 1
        if family[0] in batch.parked:
            parks += 1
            assert set(started) <= set(batch.parked)
        bench.compute(batch)
        if bench.scheduler.is_idle:
            break
    assert parks
    assert_undisturbed(old, *family)


def test_a_copy_of_a_family_saves_shared_pages_once() -> None:
    bench = bench_of(park=copied(rotate_after_s=1e9))
    family = make_family(3, 10, max_new=20)
    other = make_sequence(4, arrival=9, max_new=40)
    bench.add(*family, other)
    bench.steps(3)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    batch, _ = bench.step()
    (order,) = batch.copies
    assert set(order.request_ids) == {"r0", "r1", "r2"}
    assert len(order.pages) == len(set(order.pages)) == 2 + 3 * 1
    bench.scheduler.pool.purge()  # nothing is found in the pool: all is copied back
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    bench.step()
    assert statuses(family) == {SeqStatus.RUNNING}
    bench.run()
    assert_undisturbed(*family, other)


def test_where_the_state_is_dropped_the_prompt_is_computed_again_only_once() -> None:
    bench = bench_of(park=ParkConfig(rotate_after_s=1e9))
    family = make_family(3, 18, max_new=12)
    bench.add(*family)
    bench.steps(4)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    assert {seq.parked.fate for seq in family if seq.parked} == {Fate.RECOMPUTE}
    bench.scheduler.pool.purge()
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    batch, _ = bench.step()
    assert batch.restored == family
    assert [row.seq.request_id for row in batch.rows] == ["r0"]
    batch, _ = bench.step()
    assert [row.start for row in batch.rows if row.seq is not family[0]] == [16, 16]
    bench.run()
    assert_undisturbed(*family)


def test_a_family_alone_that_outgrows_the_pool_ends_and_nobody_else_does() -> None:
    bench = bench_of(14)
    family = make_family(4, 8, arrival=0, max_new=40)
    bench.add(*family)
    bench.steps(8)
    other = make_sequence(8, arrival=9, max_new=12)
    bench.add(other)
    ends = bench.run()
    assert {ends[seq.request_id] for seq in family} == {EndReason.OUTGREW_POOL}
    assert ends["r9"] is FinishReason.LENGTH
    assert_undisturbed(other)


def test_a_parked_family_that_no_longer_fits_an_empty_pool_ends_and_frees_the_line() -> None:
    bench = bench_of(20, park=ParkConfig(rotate_after_s=1e9))
    family = make_family(4, 9, arrival=0, max_new=60)
    bench.add(*family)
    bench.step_until(lambda batch: len(family[3].token_ids) >= 15)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    bench.scheduler.pool.purge()
    for seq in family:  # as if they had been let run on until they no longer fit together
        seq.token_ids += [1] * 12
    other = make_sequence(4, arrival=9, max_new=4)
    bench.add(other)
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    batch = bench.schedule()
    bench.compute(batch)
    assert {end.seq for end in batch.ended} == set(family)
    assert {end.reason for end in batch.ended} == {EndReason.OUTGREW_POOL}
    bench.run()
    assert_undisturbed(other)


def test_a_sibling_that_has_not_started_waits_while_the_others_are_parked() -> None:
    bench = Bench(make_scheduler(24, page_tokens=4, max_running=2, park=in_place()))
    family = make_family(3, 8, max_new=30)
    bench.add(*family)
    bench.steps(4)
    assert family[2].status is SeqStatus.WAITING
    for seq in family:
        seq.is_held = False
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.steps(2)
    assert statuses(family[:2]) == {SeqStatus.PARKED}
    family[2].is_held = False  # held by hand itself no more, it still may not enter alone
    bench.steps(2)
    assert family[2].status is SeqStatus.WAITING
    wait = bench.scheduler.explain().wait_reason(family[2])
    assert wait is not None
    assert wait.kind is WaitKind.BEHIND_SIBLINGS
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    bench.run()
    assert_undisturbed(*family)


def test_a_sibling_for_whom_the_others_leave_no_room_keeps_nobody_behind_it_waiting() -> None:
    bench = bench_of(9, park=in_place())
    family = make_family(2, 20, max_new=14)
    other = make_sequence(4, arrival=9, max_new=4)
    bench.add(*family, other)
    bench.step()
    assert (family[0].status, family[1].status) == (SeqStatus.RUNNING, SeqStatus.WAITING)
    batch = bench.step_until(lambda batch: other in batch.started)
    assert batch.parked == family[:1]
    assert bench.now_s < 5.0
    bench.run()
    assert_undisturbed(*family, other)


def test_a_cancelled_sibling_leaves_the_others_what_they_share() -> None:
    bench = bench_of(park=copied(rotate_after_s=1e9))
    family = make_family(3, 10, max_new=20)
    bench.add(*family)
    bench.steps(3)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    bench.scheduler.abort("r0", bench.now_s)
    bench.scheduler.check()
    bench.scheduler.steer(ResumeNext(request_id="r1"), bench.now_s)
    bench.run()
    assert_undisturbed(*family[1:])
    assert bench.scheduler.park_usage().used_bytes == 0


def test_a_pin_on_one_holds_for_all() -> None:
    bench = bench_of()
    family = make_family(2)
    bench.add(*family)
    bench.scheduler.steer(Pin(request_id="r1"), 0.0)
    assert all(seq.is_pinned for seq in family)


def test_with_parking_off_a_family_that_does_not_fit_ends_as_the_newest() -> None:
    bench = bench_of(16, park=ParkConfig(budget_bytes=0))
    old = make_sequence(8, arrival=0, max_new=40)
    family = make_family(2, 8, arrival=1, max_new=30)
    bench.add(old, *family)
    ends = bench.run()
    assert {ends["r1"], ends["r2"]} == {EndReason.POOL_FULL}
    assert_undisturbed(old)


@pytest.mark.parametrize("park", [in_place(), copied(), copied(is_async=True), ParkConfig()])
def test_siblings_parked_again_and_again_say_what_they_say_alone(park: ParkConfig) -> None:
    bench = bench_of(park=park, knobs=Knobs(park_every_tokens=3))
    family = make_family(3, 9, max_new=16)
    bench.add(*family)
    bench.run()
    assert all(seq.num_parks >= 3 for seq in family)
    assert_undisturbed(*family)
