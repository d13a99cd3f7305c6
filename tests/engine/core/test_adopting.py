"""Sequences that were parked when an earlier scheduler ended go on in a new one, in line with everybody else."""

from __future__ import annotations

import random

import pytest

from engine.api import FinishReason
from engine.core.config import ParkConfig
from engine.core.planting import plant_prefix
from engine.core.types import Sequence
from engine.runs import ParkCause
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.fake_runner import EMPTY_CONTEXT, KvPage, extend, solo_reply
from fakes.stepping import Bench

LIMIT_TOKENS = 32
PARKS = {"dropped": ParkConfig(), "in place": in_place(), "copied": copied()}


def crowd() -> list[Sequence]:
    return [make_sequence(6, arrival=n, max_new=12) for n in range(5)]


def moved(old: Sequence) -> Sequence:
    """The same in another program: all that is known of it is its tokens."""
    seq = make_sequence(6, arrival=old.arrival, max_new=12)
    seq.token_ids[:] = old.token_ids
    return seq


def plant(bench: Bench, seq: Sequence) -> int:
    """Bring in what an earlier pool held of its tokens."""
    size = bench.scheduler.config.page_tokens
    contents: list[KvPage] = []
    context, page = EMPTY_CONTEXT, []
    for token_id in seq.token_ids[: len(seq.token_ids) // size * size]:
        context = extend(context, token_id)
        page.append((token_id, context))
        if len(page) == size:
            contents.append([*page])
            page.clear()

    def write(pages: list[int], first: int) -> None:
        for number, content in zip(pages, contents[first:], strict=False):
            bench.runner.kv[number] = [*content]
            bench.runner.committed.add(number)

    return plant_prefix(bench.scheduler.pool, seq.token_ids, len(contents), write)


@pytest.mark.parametrize("park", PARKS)
@pytest.mark.parametrize("seed", range(12))
def test_whoever_is_cut_off_anywhere_ends_with_the_tokens_of_a_run_alone(
    park: str, seed: int
) -> None:
    dice = random.Random(seed)
    first = Bench(make_scheduler(8, window_tokens=LIMIT_TOKENS, park=PARKS[park]))
    sequences = crowd()
    first.add(*sequences)
    first.steps(dice.randrange(1, 14))
    left = [moved(seq) for seq in sequences if not seq.has_ended]

    second = Bench(make_scheduler(8, window_tokens=LIMIT_TOKENS, park=PARKS[park]))
    for seq in left:
        if dice.random() < 0.7:
            plant(second, seq)
        second.scheduler.adopt(seq, second.now_s)
        second.scheduler.check()
        if dice.random() < 0.3:
            second.step()
    newcomer = make_sequence(6, arrival=9, max_new=12)
    second.add(newcomer)
    second.run()
    for seq in (*left, newcomer):
        reply = solo_reply(seq.token_ids[:6], max_new=12, limit=LIMIT_TOKENS)
        assert (seq.token_ids[6:], second.ends[seq.request_id]) == reply
    assert second.scheduler.pool.num_usable == 8


def test_it_is_reported_as_parked_until_there_is_room_and_then_as_back() -> None:
    bench = Bench(make_scheduler(4, max_running=1, park=in_place()))
    bench.add(make_sequence(6, max_new=6))
    bench.step()
    back = make_sequence(6, arrival=1, max_new=12)
    back.token_ids += solo_reply(back.token_ids, max_new=3)[0]
    bench.scheduler.adopt(back, bench.now_s)
    batch = bench.schedule()
    assert batch.parked == (back,)
    assert back.parked is not None
    assert back.parked.reason.cause is ParkCause.ON_DISK
    assert bench.scheduler.explain().place(back) == 1
    bench.compute(batch)
    batch = bench.step_until(lambda batch: back in batch.restored)
    assert batch.started == ()
    bench.run()
    assert bench.ends["r1"] is FinishReason.LENGTH


def test_where_there_is_room_it_is_back_at_once_and_was_never_told_to_be_parked() -> None:
    bench = Bench(make_scheduler(8))
    seq = make_sequence(6, max_new=12)
    seq.token_ids += solo_reply(seq.token_ids, max_new=5)[0]
    assert plant(bench, seq) == 2
    bench.scheduler.adopt(seq, bench.now_s)
    batch, _ = bench.step()
    assert batch.restored == (seq,)
    assert [(row.start, row.count) for row in batch.rows] == [(8, 3)], "two pages were known"
    assert seq.parked is None


def test_it_can_be_aborted_while_it_waits_and_too_long_a_one_is_refused() -> None:
    bench = Bench(make_scheduler(8))
    seq = make_sequence(6)
    bench.scheduler.adopt(seq, 0.0)
    bench.scheduler.abort("r0", 1.0)
    assert bench.scheduler.is_idle
    bench.step()
    with pytest.raises(ValueError, match="allowed is 1 to 32"):
        bench.scheduler.adopt(make_sequence(33), 0.0)
