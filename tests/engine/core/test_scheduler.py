"""What the scheduler promises, one behaviour a test; random workloads are in test_fuzz_scheduler.py."""

from __future__ import annotations

import pytest

from engine.api import FinishReason, Priority
from engine.core.scheduler import Scheduler
from engine.core.types import SeqStatus, Sequence, SeqUpdate, StepBatch
from fakes.builders import make_scheduler, make_sequence
from fakes.fake_runner import FakeRunner, solo_reply


class Bench:
    """A scheduler with its runner and a clock of one second a step."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.runner = FakeRunner(scheduler.config)
        self.now_s = 0.0

    def add(self, *sequences: Sequence) -> None:
        for seq in sequences:
            self.scheduler.add(seq)

    def schedule(self) -> StepBatch:
        self.now_s += 1
        return self.scheduler.schedule(self.now_s)

    def step(self) -> tuple[StepBatch, tuple[SeqUpdate, ...]]:
        batch = self.schedule()
        self.scheduler.check()
        updates = self.scheduler.update(batch, self.runner.execute(batch), self.now_s)
        self.scheduler.check()
        return batch, updates

    def step_until_parked(self) -> StepBatch:
        for _ in range(200):
            batch, _ = self.step()
            if batch.parked:
                return batch
        raise AssertionError("nothing was parked in 200 steps")

    def run(self) -> dict[str, FinishReason]:
        reasons = {}
        for _ in range(1000):
            if self.scheduler.is_idle:
                return reasons
            batch, updates = self.step()
            assert not batch.is_empty
            reasons |= {u.seq.request_id: u.finish for u in updates if u.finish}
        raise AssertionError("not idle after 1000 steps")


def reply_of(seq: Sequence) -> list[int]:
    return seq.token_ids[seq.num_prompt :]


def prompt_of(seq: Sequence) -> list[int]:
    return seq.token_ids[: seq.num_prompt]


# --- one sequence


def test_an_idle_scheduler_gives_an_empty_batch() -> None:
    scheduler = make_scheduler()
    assert scheduler.is_idle
    assert scheduler.schedule(0.0).is_empty


def test_a_prompt_is_read_in_chunks_and_samples_after_the_last() -> None:
    bench = Bench(make_scheduler(step_tokens=4))
    bench.add(make_sequence(10, max_new=2))
    rows = [bench.step()[0].rows[0] for _ in range(4)]
    assert [(row.start, row.count, row.samples) for row in rows] == [
        (0, 4, False),
        (4, 4, False),
        (8, 2, True),
        (10, 1, True),
    ]
    assert bench.scheduler.is_idle


def test_times_are_those_passed_in() -> None:
    bench = Bench(make_scheduler(step_tokens=4))
    seq = make_sequence(6, max_new=2)
    bench.add(seq)
    bench.run()
    assert (seq.started_s, seq.first_token_s) == (1.0, 2.0)


def test_eos_is_appended_and_ends_with_stop() -> None:
    bench = Bench(make_scheduler())
    reply, _ = solo_reply(range(5), max_new=8)
    seq = make_sequence(5, max_new=8, eos=[reply[3]])
    bench.add(seq)
    assert bench.run() == {"r0": FinishReason.STOP}
    assert reply_of(seq) == reply[:4]


def test_a_lone_sequence_that_would_outgrow_the_pool_ends_with_length() -> None:
    bench = Bench(make_scheduler(pages=4, page_tokens=4))
    seq = make_sequence(5, max_new=10**9)
    bench.add(seq)
    assert bench.run() == {"r0": FinishReason.LENGTH}
    assert len(seq.token_ids) == 16


def test_the_window_ends_a_sequence_before_the_pool_does() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4, window_tokens=11))
    seq = make_sequence(5, max_new=10**9)
    bench.add(seq)
    assert bench.run() == {"r0": FinishReason.LENGTH}
    assert len(seq.token_ids) == 11


@pytest.mark.parametrize("step_tokens", [4, 64])
def test_a_prompt_of_which_no_reply_is_wanted_is_computed_and_ends(step_tokens: int) -> None:
    bench = Bench(make_scheduler(step_tokens=step_tokens))
    seq = make_sequence(9, max_new=0)
    bench.add(seq)
    assert bench.run() == {"r0": FinishReason.LENGTH}
    assert len(seq.token_ids) == 9
    assert bench.scheduler.pool.usage().reusable_pages == 2


def test_a_prompt_as_long_as_the_pool_fits() -> None:
    bench = Bench(make_scheduler(pages=4, page_tokens=4))
    bench.add(make_sequence(16, max_new=0))
    assert bench.run() == {"r0": FinishReason.LENGTH}


@pytest.mark.parametrize("prompt", [0, 33])
def test_a_prompt_that_is_empty_or_too_long_is_refused(prompt: int) -> None:
    scheduler = make_scheduler(pages=8, page_tokens=4)
    with pytest.raises(ValueError, match=f"r0: the prompt has {prompt} tokens, allowed is 1 to 32"):
        scheduler.add(make_sequence(prompt))
    assert scheduler.is_idle


def test_an_id_that_is_alive_is_refused() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence())
    with pytest.raises(ValueError, match="r0 is already alive"):
        scheduler.add(make_sequence())


# --- lines and seats


def test_sequences_beyond_the_seats_wait_in_order_of_priority_and_arrival() -> None:
    bench = Bench(make_scheduler(max_running=1))
    late, early = make_sequence(arrival=3), make_sequence(arrival=2)
    urgent = make_sequence(arrival=4, priority=Priority.INTERACTIVE)
    first = make_sequence(arrival=1)
    bench.add(first)
    bench.step()
    bench.add(late, early, urgent)
    bench.step()
    scheduler = bench.scheduler
    assert (scheduler.num_running, scheduler.num_waiting, scheduler.num_parked) == (1, 3, 0)
    assert [scheduler.place_in_line(seq) for seq in (first, urgent, early, late)] == [0, 1, 2, 3]
    assert scheduler.admission is not None
    assert scheduler.admission.reason == "all 1 seats are taken"
    assert list(bench.run()) == ["r1", "r4", "r2", "r3"]


def test_an_important_newcomer_gets_prompt_tokens_before_an_older_long_prompt() -> None:
    bench = Bench(make_scheduler(pages=40, step_tokens=8))
    bench.add(make_sequence(60, arrival=1, priority=Priority.BACKGROUND))
    bench.step()
    bench.add(make_sequence(10, arrival=2, priority=Priority.INTERACTIVE))
    batch, _ = bench.step()
    assert [(row.seq.request_id, row.count) for row in batch.rows] == [("r2", 8)]


def test_a_short_prompt_behind_a_long_one_takes_no_page_until_it_has_work() -> None:
    bench = Bench(make_scheduler(pages=40, step_tokens=8))
    bench.add(make_sequence(60, arrival=1), make_sequence(4, arrival=2))
    batch, _ = bench.step()
    assert [seq.request_id for seq in batch.started] == ["r1"]
    assert bench.scheduler.num_waiting == 1


def test_with_fewer_tokens_than_seats_everybody_is_served() -> None:
    bench = Bench(make_scheduler(pages=32, max_running=8, step_tokens=2))
    bench.add(*(make_sequence(5, arrival=i) for i in range(6)))
    assert len(bench.run()) == 6


# --- prefixes


def test_the_next_turn_of_a_chat_finds_prompt_and_reply() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4))
    first = make_sequence(10, max_new=7)
    bench.add(first)
    bench.run()
    turn = make_sequence([*first.token_ids, 7, 7, 7], arrival=1)
    bench.add(turn)
    bench.run()
    assert turn.num_cached == 16  # of 17 tokens the last was never computed
    assert reply_of(turn) == solo_reply(prompt_of(turn), max_new=8)[0]


def test_two_sequences_alive_share_the_pages_of_a_common_beginning() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4))
    first, second = make_sequence(range(12)), make_sequence([*range(8), 99, 98], arrival=1)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.step()
    assert second.num_cached == 8
    assert second.page_table[:2] == first.page_table[:2]
    assert second.page_table[2] != first.page_table[2]


def test_two_sequences_that_compute_the_same_page_side_by_side_end_up_sharing_it() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4))
    first, second = make_sequence(range(9)), make_sequence(range(9), arrival=1)
    bench.add(first, second)
    bench.step()
    assert second.num_cached == 0
    assert second.page_table[:2] == first.page_table[:2]
    assert bench.scheduler.pool.num_usable == 16 - 4


def test_a_prompt_known_whole_still_computes_its_last_token() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4))
    bench.add(make_sequence(range(8), max_new=1))
    bench.run()
    again = make_sequence(range(8), arrival=1, max_new=3)
    bench.add(again)
    batch, _ = bench.step()
    assert (batch.rows[0].start, batch.rows[0].count) == (4, 4)
    bench.run()
    assert reply_of(again) == solo_reply(range(8), max_new=3)[0]


def test_pages_being_computed_are_not_found_before_the_step_has_run() -> None:
    bench = Bench(make_scheduler(pages=16, page_tokens=4))
    bench.add(make_sequence(range(12)))
    bench.schedule()
    assert bench.scheduler.pool.find(range(12)) == []


# --- parking


def test_when_pages_run_out_the_newest_is_parked_and_comes_back() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    old, new = make_sequence(8, arrival=1, max_new=12), make_sequence(8, arrival=2, max_new=12)
    bench.add(old, new)
    batch = bench.step_until_parked()
    assert batch.parked == (new,)
    assert batch.plan is not None
    assert batch.plan.victims[0].pages_freed == 4
    assert new.status is SeqStatus.PARKED
    assert new.parked is not None
    assert (new.parked.held_tokens, new.num_computed, new.page_table) == (17, 0, [])
    assert bench.run() == {"r1": FinishReason.LENGTH, "r2": FinishReason.LENGTH}
    assert new.num_parks == 1
    assert new.parked_s == new.last_park_s > 0
    for seq in (old, new):
        assert reply_of(seq) == solo_reply(prompt_of(seq), max_new=12)[0]


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
    assert bench.scheduler.place_in_line(newcomer) == 2
    while not (batch := bench.step()[0]).started:
        assert newcomer.status is SeqStatus.WAITING
        assert bench.scheduler.num_parked or batch.restored
    assert bench.scheduler.num_parked == 0


def test_a_step_that_parks_lets_nobody_in() -> None:
    bench = Bench(make_scheduler(pages=8, page_tokens=4))
    bench.add(*(make_sequence(8, arrival=i, max_new=12) for i in (1, 2)))
    batch = bench.step_until_parked()
    assert not batch.started
    assert not batch.restored


@pytest.mark.parametrize(("prompt", "enters"), [(7, True), (8, False)])
def test_pages_that_a_running_prompt_still_needs_are_promised(prompt: int, *, enters: bool) -> None:
    """Of 8 pages it holds 1 and needs 4 more: 3 are spare, of which 1 is margin."""
    bench = Bench(make_scheduler(pages=8, page_tokens=4, step_tokens=4))
    bench.add(make_sequence(20, arrival=1, max_new=1))
    bench.step()
    newcomer = make_sequence(prompt, arrival=2, max_new=1, priority=Priority.INTERACTIVE)
    bench.add(newcomer)
    batch, _ = bench.step()
    assert (newcomer in batch.started) is enters
    assert len(bench.run()) == 2


def test_a_restored_sequence_is_not_parked_again_at_once() -> None:
    bench = Bench(make_scheduler(pages=10, page_tokens=4, max_running=3))
    sequences = [make_sequence(6, arrival=i, max_new=24) for i in range(3)]
    bench.add(*sequences)
    bench.run()
    assert [seq.num_parks for seq in sequences] == [0, 1, 1]


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
