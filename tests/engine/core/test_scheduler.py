"""What the scheduler promises, one behaviour a test; parking and leaving have a file of their own."""

from __future__ import annotations

import pytest

from engine.api import FinishReason, Priority
from engine.core.admission import Admission
from engine.runs import WaitKind
from fakes.builders import make_scheduler, make_sequence
from fakes.fake_runner import solo_reply
from fakes.stepping import Bench, prompt_of, reply_of

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
    explain = scheduler.explain()
    assert [explain.place(seq) for seq in (first, urgent, early, late)] == [0, 1, 2, 3]
    assert scheduler.admission == Admission(WaitKind.NO_SEAT)
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
