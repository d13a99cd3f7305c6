"""How sequences leave the pool: parked and back again, aborted, finished, failed."""

from __future__ import annotations

import pytest

from engine.api import FinishReason, Priority
from engine.core.config import ParkConfig
from engine.core.parked import EndReason, Fate
from engine.core.types import SeqStatus, Sequence, SeqUpdate
from engine.runs import ParkCause, ParkReason
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed, reply_of

# --- parking


def test_when_pages_run_out_the_newest_is_parked_and_comes_back() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    old, new = make_sequence(8, arrival=1, max_new=12), make_sequence(8, arrival=2, max_new=12)
    bench.add(old, new)
    batch = bench.step_until_parked()
    assert batch.parked == (new,)
    assert new.status is SeqStatus.PARKED
    assert new.parked is not None
    assert new.parked.reason == ParkReason(
        cause=ParkCause.PAGES_SHORT, for_ids=("r1",), pages_short=2
    )
    assert (new.parked.fate, new.parked.held_tokens) == (Fate.RECOMPUTE, 17)
    assert (new.num_computed, new.page_table) == (0, [])
    assert bench.run() == {"r1": FinishReason.LENGTH, "r2": FinishReason.LENGTH}
    assert (new.num_parks, new.num_recomputes) == (1, 1)
    assert new.parked_s == new.last_park_s > 0
    assert_undisturbed(old, new)


def test_two_that_fill_the_pool_to_the_last_token_are_not_parked() -> None:
    """Pages are taken before a step runs, so no margin is needed for it."""
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    both = [make_sequence(8, arrival=i, max_new=8) for i in (1, 2)]
    bench.add(*both)
    bench.run()
    assert [seq.num_parks for seq in both] == [0, 0]


def test_a_parked_sequence_finds_what_nobody_took_meanwhile() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    old, new = make_sequence(8, arrival=1, max_new=12), make_sequence(8, arrival=2, max_new=12)
    bench.add(old, new)
    bench.step_until_parked()
    bench.scheduler.abort("r1", bench.now_s)
    batch = bench.schedule()
    assert batch.restored == (new,)
    assert batch.rows[0].start == 12  # three of its four pages; the leader had taken the last
    assert new.num_cached == 0


def test_the_oldest_is_never_parked_and_the_least_important_goes_first() -> None:
    bench = Bench(make_scheduler(pages=9, page_tokens=4))
    background = make_sequence(4, arrival=1, max_new=20, priority=Priority.BACKGROUND)
    others = [make_sequence(4, arrival=i, max_new=20) for i in (2, 3)]
    bench.add(background, *others)
    assert bench.step_until_parked().parked == (background,)
    assert bench.step_until_parked().parked == (others[1],)
    bench.run()
    assert others[0].num_parks == 0


def test_newcomers_wait_behind_the_parked() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    bench.add(*(make_sequence(8, arrival=i, max_new=12) for i in (1, 2)))
    bench.step_until_parked()
    newcomer = make_sequence(1, arrival=3, max_new=1)
    bench.add(newcomer)
    assert bench.scheduler.explain().place(newcomer) == 2
    restored: list[Sequence] = []
    while not (batch := bench.step()[0]).started:
        assert newcomer.status is SeqStatus.WAITING
        restored += batch.restored
    restored += batch.restored
    assert [seq.request_id for seq in restored] == ["r2"]


def test_a_step_that_parks_lets_nobody_in() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    bench.add(*(make_sequence(8, arrival=i, max_new=12) for i in (1, 2)))
    batch = bench.step_until_parked()
    assert not batch.started
    assert not batch.restored


@pytest.mark.parametrize(("prompt", "enters"), [(4, True), (5, False)])
def test_pages_that_a_running_prompt_still_needs_are_promised(prompt: int, *, enters: bool) -> None:
    """Of 10 pages it holds 1 and needs 4 more: 5 are spare, of which 4 are margin for two."""
    bench = Bench(make_scheduler(pages=10, page_tokens=4, step_tokens=4))
    bench.add(make_sequence(20, arrival=1, max_new=1))
    bench.step()
    newcomer = make_sequence(prompt, arrival=2, max_new=1, priority=Priority.INTERACTIVE)
    bench.add(newcomer)
    batch, _ = bench.step()
    assert (newcomer in batch.started) is enters
    assert len(bench.run()) == 2


def test_a_restored_sequence_is_not_parked_again_at_once() -> None:
    bench = Bench(make_scheduler(pages=14, page_tokens=4, max_running=3), step_s=0.01)
    sequences = [make_sequence(6, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    bench.run()
    assert [seq.num_parks for seq in sequences] == [0, 0, 1]


def test_one_who_would_be_parked_again_waits_until_the_others_leave_it_room() -> None:
    """It fits after a few steps, but all three have limits, and together they do not fit."""
    bench = Bench(
        make_scheduler(pages=14, page_tokens=4, park=in_place(rotate_after_s=1e9)), step_s=0.01
    )
    sequences = [make_sequence(8, arrival=i, max_new=n) for i, n in enumerate((4, 40, 40))]
    bench.add(*sequences)
    bench.run()
    assert [seq.num_parks for seq in sequences] == [0, 0, 1]


def test_a_prompt_in_progress_is_parked_between_two_chunks() -> None:
    park = in_place(rotate_after_s=1e9)
    bench = Bench(make_scheduler(pages=13, page_tokens=4, step_tokens=2, park=park))
    writing = make_sequence(4, arrival=1, max_new=40)
    reading = make_sequence(24, arrival=2, max_new=4)
    bench.add(writing)
    bench.steps(6)
    bench.add(reading)
    assert bench.step_until_parked().parked == (reading,)
    assert 0 < reading.num_computed < reading.num_prompt
    bench.run()
    assert_undisturbed(writing, reading)


def test_a_pinned_sequence_stays_while_somebody_else_can_go() -> None:
    bench = Bench(make_scheduler(pages=9, page_tokens=4))
    sequences = [make_sequence(4, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    sequences[2].is_pinned = True
    assert bench.step_until_parked().parked == (sequences[1],)
    bench.run()
    assert sequences[2].num_parks == 0


def test_with_parking_off_only_the_newest_ends_when_the_pool_is_full() -> None:
    bench = Bench(make_scheduler(pages=9, page_tokens=4, park=ParkConfig(budget_bytes=0)))
    sequences = [make_sequence(4, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    ends = bench.run()
    assert ends["r2"] is EndReason.POOL_FULL
    assert ends["r1"] is EndReason.POOL_FULL
    assert ends["r0"] is FinishReason.LENGTH
    assert len(reply_of(sequences[1])) > len(reply_of(sequences[2])) > 0
    assert_undisturbed(sequences[0])
    assert all(seq.num_parks == 0 for seq in sequences)


def test_the_end_of_one_that_does_not_fit_has_the_numbers() -> None:
    bench = Bench(make_scheduler(pages=6, page_tokens=4, park=ParkConfig(budget_bytes=0)))
    bench.add(*(make_sequence(4, arrival=i, max_new=20) for i in range(2)))
    (end,) = bench.step_until(lambda batch: bool(batch.ended)).ended
    assert (end.seq.request_id, end.reason) == ("r1", EndReason.POOL_FULL)
    assert (end.needed_tokens, end.limit_tokens) == (13, 24)


# --- leaving


def test_abort_frees_everything_in_any_state() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4, max_running=2))
    old, new, waiting = (make_sequence(8, arrival=i, max_new=12) for i in (1, 2, 3))
    bench.add(old, new, waiting)
    bench.step_until_parked()
    for seq in (new, waiting, old):
        assert bench.scheduler.abort(seq.request_id, bench.now_s + 2) is seq
        assert seq.status is SeqStatus.FINISHED
        bench.scheduler.check()
    assert new.parked_s == 2.0
    assert bench.scheduler.is_idle
    assert bench.scheduler.pool.num_usable == 8


def test_aborting_an_unknown_id_gives_none() -> None:
    assert make_scheduler().abort("nobody", 0.0) is None


def test_a_sequence_aborted_while_its_step_runs_is_passed_over() -> None:
    bench = Bench(make_scheduler(pages=16))
    gone, stays = make_sequence(arrival=1), make_sequence(arrival=2)
    bench.add(gone, stays)
    batch = bench.schedule()
    token_ids = bench.runner.execute(batch)
    bench.scheduler.abort("r1", 1.0)
    updates = bench.scheduler.update(batch, token_ids, 1.0)
    assert updates == (SeqUpdate(stays, token_ids[1], None),)
    assert len(gone.token_ids) == 5
    bench.scheduler.check()


def test_finish_ends_a_sequence_and_keeps_what_it_computed_findable() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    seq = make_sequence(9)
    bench.add(seq)
    bench.step()
    bench.scheduler.finish(seq)
    bench.scheduler.finish(seq)
    assert bench.scheduler.is_idle
    assert len(bench.scheduler.pool.find(seq.token_ids)) == 2
    bench.scheduler.check()


def test_a_failed_step_ends_its_rows_only_and_nothing_it_wrote_is_found() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4, max_running=1))
    failing, waiting = make_sequence(9, arrival=1), make_sequence(9, arrival=2)
    bench.add(failing, waiting)
    batch = bench.schedule()
    assert bench.scheduler.fail(batch) == (failing,)
    assert bench.scheduler.fail(batch) == ()
    bench.scheduler.check()
    assert bench.scheduler.pool.find(failing.token_ids) == []
    assert bench.scheduler.pool.usage().free_pages == 16
    assert bench.run() == {"r2": FinishReason.LENGTH}


def test_a_failed_step_does_not_harm_pages_of_earlier_steps() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4, step_tokens=8))
    seq = make_sequence(16)
    bench.add(seq)
    bench.step()
    bench.scheduler.fail(bench.schedule())
    assert len(bench.scheduler.pool.find(seq.token_ids)) == 2
    bench.scheduler.check()


def test_a_wrong_number_of_tokens_is_refused_and_changes_nothing() -> None:
    bench = Bench(make_scheduler())
    seq = make_sequence()
    bench.add(seq)
    batch = bench.schedule()
    with pytest.raises(ValueError, match="2 tokens for 1 sampling rows"):
        bench.scheduler.update(batch, [1, 2], 1.0)
    assert (seq.num_computed, len(seq.token_ids)) == (0, 5)


def test_live_sequences_are_listed_in_order_of_coming() -> None:
    bench = Bench(make_scheduler(max_running=1))
    sequences = tuple(make_sequence(arrival=i) for i in (2, 1, 3))
    bench.add(*sequences)
    bench.step()
    assert bench.scheduler.live == sequences


def test_an_illegal_move_is_refused() -> None:
    seq = make_sequence()
    with pytest.raises(ValueError, match="r0: waiting -> parked is no legal move"):
        seq.move_to(SeqStatus.PARKED)
