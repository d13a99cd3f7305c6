"""The catalogue of what goes wrong when requests are parked: each case that this engine can meet, and its test.

`CASES` names a test for every case of the core ("file: test", or just the test where it stands below); `ELSEWHERE` says
where the others belong, or why they cannot occur here. A test checks that no case is missing and every test exists.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.api import FinishReason, Priority
from engine.core.config import ParkConfig
from engine.core.parked import EndReason, Fate
from engine.core.room import margin, promised, runway, spare
from engine.core.types import SeqStatus
from engine.runs import ParkCause, ParkNow, ResumeNext
from fakes.builders import copied, in_place, make_family, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed

PARKING, COPY, POOL = "scheduler_parking", "parking_by_copy", "kv_pool"
IN_PLACE, ROTATION, PLANNER, FAILS = "parking_in_place", "rotation", "planner", "copies_that_fail"
POLICIES, FAMILIES, LAST, HOST = "victim_policies", "families", "last_resort", "host_pool"

CASES: dict[str, tuple[int, ...]] = {
    # measuring the pool
    "test_four_chats_that_fill_the_pool_together_all_finish": (1,),
    "test_a_step_costs_a_page_only_when_it_crosses_into_one": (2, 3),
    "test_the_margin_is_rounded_up_once_for_all_who_are_in_or_about_to_be": (4, 5, 8),
    f"{COPY}: test_beside_steps_a_parking_sequence_owns_its_pages_until_the_copy_has_landed": (
        (6, 78, 112, 113, 129)
    ),
    "test_a_restoring_sequence_is_promised_the_page_of_its_first_step": (7,),
    f"{FAMILIES}: test_siblings_share_the_pages_of_their_prompt_and_compute_it_once": (9, 141),
    "test_the_first_of_a_family_may_end_while_the_others_use_its_pages": (11, 12),
    f"{POOL}: test_check_tells_what_is_wrong": (16,),
    "scheduler: test_a_prompt_known_whole_still_computes_its_last_token": (22,),
    "test_with_room_for_all_and_nobody_outside_no_page_is_looked_at": (23,),
    f"{LAST}: test_a_coarser_granularity_parks_earlier_and_changes_no_reply": (24,),
    f"{POOL}: test_pages_of_only_some_tables_are_those_nobody_else_uses": (27,),
    "test_a_newcomer_is_not_kept_out_by_what_others_will_grow_to": (28,),
    # choosing and fairness
    f"{PARKING}: test_the_oldest_is_never_parked_and_the_least_important_goes_first": (35,),
    f"{PLANNER}: test_one_parked_three_times_is_passed_over_while_another_can_go": (36, 37),
    "scheduler: test_a_lone_sequence_that_would_outgrow_the_pool_ends_with_length": (38,),
    f"{PARKING}: test_a_prompt_in_progress_is_parked_between_two_chunks": (39,),
    f"{PARKING}: test_newcomers_wait_behind_the_parked": (40,),
    f"{POLICIES}: test_cost_takes_one_that_covers_where_the_smallest_would_take_three": (41,),
    f"{POLICIES}: test_the_leader_is_the_oldest_or_the_one_with_most_tokens": (42,),
    f"{PLANNER}: test_the_pinned_stay_while_anybody_else_can_go_even_the_leader": (44,),
    f"{ROTATION}: test_where_passing_is_allowed_a_small_one_goes_before_a_large_head": (45,),
    f"{ROTATION}: test_newcomers_however_short_wait_for_the_aged_head": (46,),
    f"{ROTATION}: test_projection_keeps_the_number_of_parks_small": (47,),
    # resume, impossible, rotation
    "test_one_that_fills_the_whole_pool_comes_back_without_a_margin": (51,),
    f"{FAMILIES}: test_a_parked_family_that_no_longer_fits_an_empty_pool_ends_and_frees_the_line": (
        (52,)
    ),
    f"{FAILS}: test_a_restore_that_fails_is_undone_and_tried_again": (53,),
    f"{FAILS}: test_a_restore_that_fails_eight_times_in_a_minute_ends_the_sequence": (54,),
    "test_one_to_be_recomputed_returns_only_when_all_its_tokens_fit": (55,),
    f"{PARKING}: test_pages_that_a_running_prompt_still_needs_are_promised": (56,),
    f"{ROTATION}: test_a_resident_that_cycles_through_context_shifts_gives_way_after_two_seconds": (
        (57, 114)
    ),
    f"{ROTATION}: test_without_room_in_the_budget_a_resident_gives_way_by_recompute_after_half_a_minute": (
        (58, 61)
    ),
    f"{ROTATION}: test_one_that_has_just_come_back_is_not_rotated_straight_out": (59,),
    f"{ROTATION}: test_no_credit_is_given_for_what_the_head_will_free": (60,),
    "test_nobody_is_rotated_while_pages_are_coming_and_the_head_waits_for_them": (62, 65),
    f"{PLANNER}: test_the_smallest_that_lets_the_head_in_gives_way": (63,),
    # host memory and copies
    f"{FAILS}: test_over_budget_the_state_is_dropped_instead": (66,),
    f"{FAILS}: test_a_park_for_which_there_is_no_host_memory_becomes_a_recompute": (67,),
    "test_one_that_has_computed_nothing_has_no_state_to_keep": (68,),
    f"{COPY}: test_the_idle_buffer_of_one_makes_room_for_the_park_of_another": (69,),
    f"{HOST}: test_a_buffer_is_grown_by_half_only_where_a_second_one_of_that_size_would_fit": (
        (71, 72)
    ),
    f"{HOST}: test_a_kept_buffer_that_is_larger_than_the_next_state_counts_whole": (73,),
    f"{FAILS}: test_one_whose_buffer_cannot_be_pinned_parks_in_step_from_then_on": (74,),
    f"{HOST}: test_no_limit_holds_anything": (76, 77),
    f"{COPY}: test_rows_whose_pages_are_still_being_copied_out_sit_a_step_out": (79,),
    # shifts and counts
    f"{LAST}: test_a_context_that_is_shifted_goes_on_from_the_tokens_it_keeps": (89, 93, 94, 154),
    "test_reading_again_counts_neither_as_prompt_nor_as_cached": (102, 103),
    "test_a_rewound_prompt_is_computed_exactly_once": (107, 108),
    # accounting
    "test_those_in_transfer_count_as_out_and_are_told_apart": (126, 127),
    # failure, cancel, lifetime
    f"{LAST}: test_rows_are_rewound_and_somebody_is_parked_and_the_others_go_on": (130,),
    "test_a_failed_step_ends_nobody_who_is_out": (131,),
    f"{FAMILIES}: test_a_family_alone_that_outgrows_the_pool_ends_and_nobody_else_does": (132,),
    f"{PARKING}: test_a_failed_step_ends_its_rows_only_and_nothing_it_wrote_is_found": (133,),
    "test_the_same_prompt_after_a_cancelled_park_is_read_right": (134,),
    f"{FAILS}: test_a_cancel_at_any_moment_leaves_nothing_a_thousand_times_in_a_row": (135,),
    "scheduler: test_the_next_turn_of_a_chat_finds_prompt_and_reply": (153,),
}

ELSEWHERE: dict[str, tuple[int, ...]] = {
    "a newcomer holds no page before it has entered, and no pages of the request before it": (
        (10, 30, 31, 32, 33, 34, 64)
    ),
    "there are no grouped decision tasks": (13, 14),
    "a party is made of different sequences": (15,),
    "numbers have no width in Python": (17,),
    "every model here shares one pool of pages; others are refused at load": (18, 19, 21, 84, 85),
    "a scheduler is made anew, with its configuration, at every load": (20, 48),
    "speculation is not there yet; a draft will be part of a row's tokens": (
        (25, 26, 70, 83, 92, 96, 97, 99, 100, 101, 137, 151, 152)
    ),
    "there is no audio, and no task whose parks would break it": (29, 43),
    "an unknown resume order is refused by the flag, since the configuration takes an enum": (49,),
    "a request is checked, and its sampling tried, before it is put in line": (
        (50, 110, 116, 117, 118, 119)
    ),
    "the runtime's: copies are ordered on a stream, and posted whole or not at all": (80, 81, 82),
    "one gather or scatter moves all pages, to pages that nobody else has": (87, 88),
    "there are no images": (86, 105, 106, 140),
    "no shift moves keys in place: what is kept is read again": (90, 95),
    "the runtime's: its loop outlives whatever a step does, and waits for copies before it unloads": (
        (91, 136)
    ),
    "sampling keeps no state: a draw is a function of seed and position": (98,),
    "there are no prompt checkpoints, and no saved sessions": (104, 109, 156, 157),
    "the server's: what a stream, an answer, /props, /slots and /metrics say": (
        (75, 111, 115, 120, 121, 122, 123, 124, 125, 128)
    ),
    "the program's: command line, logs, loading": (138, 139),
    "every kernel computes a row alone, so neither width, nor chunks, nor pages can matter": (
        (142, 143, 144, 145, 146, 147, 148, 149, 150, 155, 158, 159, 160, 161, 162, 163, 164)
    ),
    "no list of cells is searched: a page is free when its last user goes": (165, 166, 167, 168),
    "the client's": tuple(range(169, 184)),
    "lessons about tests: ours force overlap by lengths, wait for conditions and assert counts": (
        tuple(range(184, 192))
    ),
}


def test_every_case_has_its_test_or_its_reason() -> None:
    numbers = [number for group in (CASES, ELSEWHERE) for one in group.values() for number in one]
    assert sorted(numbers) == list(range(1, 192))


@pytest.mark.parametrize("name", CASES)
def test_every_test_named_exists(name: str) -> None:
    file, test = name.split(": ") if ": " in name else ("edge_cases", name)
    source = (Path(__file__).parent / f"test_{file}.py").read_text(encoding="utf-8")
    assert re.search(rf"^def {test}\(", source, re.MULTILINE)


def bench_of(
    pages: int = 24, *, park: ParkConfig | None = None, step_tokens: int = 64, copy_steps: int = 3
) -> Bench:
    """A pool of pages of four tokens."""
    park = in_place(rotate_after_s=1e9) if park is None else park
    scheduler = make_scheduler(pages, page_tokens=4, step_tokens=step_tokens, park=park)
    return Bench(scheduler, copy_steps=copy_steps)


# --- measuring the pool


@pytest.mark.parametrize("park", [ParkConfig(), in_place(), copied(), copied(is_async=True)])
def test_four_chats_that_fill_the_pool_together_all_finish(park: ParkConfig) -> None:
    bench = bench_of(24, park=park)
    chats = [make_sequence(10, arrival=i, max_new=30) for i in range(4)]
    bench.add(*chats)
    assert set(bench.run().values()) == {FinishReason.LENGTH}
    assert sum(seq.num_parks for seq in chats) >= 1
    assert_undisturbed(*chats)


def test_a_step_costs_a_page_only_when_it_crosses_into_one() -> None:
    bench = bench_of()
    bench.add(*(make_sequence(6, arrival=i, max_new=20) for i in range(2)))
    taken = []
    for _ in range(8):
        before = bench.scheduler.pool.num_usable
        bench.step()
        taken.append(before - bench.scheduler.pool.num_usable)
    assert taken == [4, 0, 0, 2, 0, 0, 0, 2]


@pytest.mark.parametrize(("num_residents", "pages"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_the_margin_is_rounded_up_once_for_all_who_are_in_or_about_to_be(
    num_residents: int, pages: int
) -> None:
    scheduler = make_scheduler(100, page_tokens=32)
    assert margin(scheduler._yard, num_residents) == pages
    beside = make_scheduler(100, page_tokens=32, max_running=9, park=copied(is_async=True))
    assert margin(beside._yard, num_residents - 1) == pages
    beside_bench = Bench(beside)
    beside_bench.add(*(make_sequence(4, arrival=i) for i in range(num_residents)))
    beside_bench.step()
    assert runway(beside._yard) == margin(beside._yard, num_residents)


def test_a_restoring_sequence_is_promised_the_page_of_its_first_step() -> None:
    bench = bench_of(park=copied(is_async=True, rotate_after_s=1e9), copy_steps=10**6)
    seq = make_sequence(7, max_new=8)
    bench.add(seq)
    bench.steps(2)  # eight tokens are computed, the ninth is the first of a page
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    bench.land_all()
    bench.scheduler.pool.purge()
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    bench.step()
    assert seq.status is SeqStatus.RESTORING
    yard = bench.scheduler._yard
    assert promised(yard, seq) == 1
    assert spare(yard) == yard.pool.num_usable - 1


def test_the_first_of_a_family_may_end_while_the_others_use_its_pages() -> None:
    bench = bench_of()
    family = make_family(3, 10, max_new=12)
    bench.add(*family)
    bench.steps(4)
    shared = family[1].page_table[:2]
    bench.scheduler.abort("r0", bench.now_s)
    bench.scheduler.check()
    pool = bench.scheduler.pool
    assert [pool.user_count(page) for page in shared] == [2, 2]
    bench.run()
    assert_undisturbed(*family[1:])


def test_with_room_for_all_and_nobody_outside_no_page_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def looked(*_: object, **__: object) -> None:
        raise AssertionError("somebody looked at pages for nothing")

    bench = bench_of()
    bench.add(*(make_sequence(5, arrival=i, max_new=9) for i in range(3)))
    bench.step()
    for name in ("find", "pages_of_only", "cost"):
        monkeypatch.setattr(bench.scheduler.pool, name, looked)
    assert len(bench.run()) == 3


def test_a_newcomer_is_not_kept_out_by_what_others_will_grow_to() -> None:
    bench = bench_of(24)
    bench.add(make_sequence(8, arrival=0, max_new=80))
    bench.step()
    newcomer = make_sequence(8, arrival=1, max_new=80)
    bench.add(newcomer)
    assert newcomer in bench.step()[0].started


# --- resume and rotation


@pytest.mark.parametrize("park", [ParkConfig(), in_place(), copied(), copied(is_async=True)])
def test_one_that_fills_the_whole_pool_comes_back_without_a_margin(park: ParkConfig) -> None:
    bench = bench_of(8, park=park)
    seq = make_sequence(31, max_new=1000)
    bench.add(seq)
    bench.step()
    assert len(seq.token_ids) == 32
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.steps(5)
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    assert bench.run() == {"r0": FinishReason.LENGTH}


def test_one_to_be_recomputed_returns_only_when_all_its_tokens_fit() -> None:
    """Its first chunk would fit long before."""
    bench = bench_of(16, park=ParkConfig(rotate_after_s=1e9), step_tokens=4)
    large = make_sequence(30, arrival=1, max_new=2)
    bench.add(large)
    bench.steps(8)
    bench.scheduler.steer(ParkNow(request_id="r1"), bench.now_s)
    bench.step()
    other = make_sequence(20, arrival=0, max_new=20, priority=Priority.INTERACTIVE)
    bench.add(other)
    bench.steps(2)
    bench.scheduler.pool.purge()
    large.is_held = False
    bench.step_until(lambda batch: large in batch.restored)
    assert other.has_ended
    bench.run()
    assert_undisturbed(large, other)


def test_nobody_is_rotated_while_pages_are_coming_and_the_head_waits_for_them() -> None:
    bench = bench_of(24, park=copied(is_async=True), copy_steps=10**6)
    chats = [make_sequence(24, arrival=i, max_new=60) for i in range(3)]
    bench.add(*chats)
    batch = bench.step_until_parked()
    assert batch.parked[0].parked is not None
    assert batch.parked[0].parked.reason.cause is ParkCause.ROTATION
    for _ in range(5):
        batch, _ = bench.step()
        assert batch.rows
        assert not batch.parked
        assert not batch.started
    bench.land_all()
    batch, _ = bench.step()
    assert batch.started == (chats[2],)


def test_one_that_has_computed_nothing_has_no_state_to_keep() -> None:
    bench = bench_of(park=copied())
    seq = make_sequence(8, max_new=4)
    bench.add(seq)
    bench.schedule()  # it has entered, and its first step never ran
    assert not bench.scheduler._yard.keeper.can_keep((seq,))
    assert bench.scheduler._parking.candidate((seq,), 0).fate is Fate.RECOMPUTE


# --- counts


def test_reading_again_counts_neither_as_prompt_nor_as_cached() -> None:
    bench = bench_of(park=ParkConfig(rotate_after_s=1e9), step_tokens=4)
    seq = make_sequence(10, max_new=12)
    bench.add(seq)
    bench.steps(6)
    first_s, computed = seq.first_token_s, seq.num_computed
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    bench.scheduler.pool.purge()
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    batch, _ = bench.step()
    assert (batch.rows[0].start, batch.rows[0].samples) == (0, False)
    assert (seq.num_prompt, seq.num_cached, seq.first_token_s) == (10, 0, first_s)
    assert seq.last_recomputed == computed
    bench.run()
    assert_undisturbed(seq)


def test_a_rewound_prompt_is_computed_exactly_once() -> None:
    bench = bench_of(park=copied(), step_tokens=24)
    sequences = [make_sequence(20, arrival=i, max_new=2) for i in range(2)]
    bench.add(*sequences)
    computed = 0
    for step in range(40):
        if bench.scheduler.is_idle:
            break
        batch = bench.schedule()
        if step == 0:
            assert [(row.start, row.count) for row in batch.rows] == [(0, 20), (0, 4)]
            batch = bench.scheduler.last_resort(batch, bench.now_s)
            assert [row.seq for row in batch.rows] == sequences[:1]
        computed += batch.num_tokens
        bench.compute(batch)
    assert computed == 2 * (20 + 1)
    assert_undisturbed(*sequences)


def test_those_in_transfer_count_as_out_and_are_told_apart() -> None:
    bench = bench_of(park=copied(is_async=True), copy_steps=10**6)
    seq = make_sequence(8, max_new=20)
    bench.add(seq)
    bench.steps(2)
    seen = []
    for command in (ParkNow(request_id="r0"), ResumeNext(request_id="r0")):
        bench.scheduler.steer(command, bench.now_s)
        bench.step()
        seen.append((seq.status, bench.scheduler.num_parked))
        bench.land_all()
        seen.append((seq.status, bench.scheduler.num_parked))
    assert seen == [
        (SeqStatus.PARKING, 1),
        (SeqStatus.PARKED, 1),
        (SeqStatus.RESTORING, 1),
        (SeqStatus.RUNNING, 0),
    ]


# --- failure


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failed_step_ends_nobody_who_is_out(*, is_async: bool) -> None:
    bench = bench_of(park=copied(is_async=is_async), copy_steps=10**6)
    runs, out, waits = (make_sequence(8, arrival=i, max_new=20) for i in range(3))
    bench.add(runs, out)
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r1"), bench.now_s)
    batch = bench.schedule()
    bench.add(waits)
    assert bench.scheduler.fail(batch) == (runs,)
    bench.land_all()
    assert (out.status, waits.status) == (SeqStatus.PARKED, SeqStatus.WAITING)
    bench.copy_steps = 1
    bench.scheduler.steer(ResumeNext(request_id="r1"), bench.now_s)
    bench.run()
    assert_undisturbed(out, waits)


@pytest.mark.parametrize("park", [ParkConfig(), in_place(), copied(), copied(is_async=True)])
def test_the_same_prompt_after_a_cancelled_park_is_read_right(park: ParkConfig) -> None:
    bench = bench_of(park=park)
    gone = make_sequence(range(10), arrival=0, max_new=20)
    bench.add(gone)
    bench.steps(3)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    bench.scheduler.abort("r0", bench.now_s)
    again = make_sequence(range(10), arrival=1, max_new=20)
    bench.add(again)
    assert bench.run() == {"r1": FinishReason.LENGTH}
    assert again.num_cached in (0, 8)
    assert_undisturbed(again)


def test_one_that_must_end_ends_once() -> None:
    """The scheduler's own ends come as data, exactly once, and never as an exception."""
    bench = bench_of(8, park=ParkConfig(budget_bytes=0))
    chats = [make_sequence(4, arrival=i, max_new=40) for i in range(2)]
    bench.add(*chats)
    ended = []
    for _ in range(60):
        if bench.scheduler.is_idle:
            break
        ended += [(end.seq, end.reason) for end in bench.step()[0].ended]
    assert ended in ([], [(chats[1], EndReason.POOL_FULL)])
