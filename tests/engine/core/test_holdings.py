"""The picture of the pool: each page once, with all who hold it; and what is kept for the parked outside of it."""

from __future__ import annotations

from engine.core.holdings import holdings
from engine.core.types import SeqStatus, Sequence
from engine.runs import Holding, ParkNow
from fakes.builders import copied, in_place, make_family, make_scheduler, make_sequence
from fakes.stepping import Bench


def held(name: str, arrival: int, *pages: int) -> Sequence:
    seq = make_sequence(arrival=arrival, request_id=name)
    seq.page_table = list(pages)
    return seq


def of(pages: int, *names: str) -> Holding:
    return Holding(request_ids=names, pages=pages)


def test_pages_of_one_request_are_one_holding() -> None:
    assert holdings([held("b", 2, 7, 8), held("a", 1, 5), held("c", 3)]) == (of(1, "a"), of(2, "b"))
    assert holdings([]) == ()


def test_a_common_beginning_comes_before_what_each_has_alone() -> None:
    found = holdings([held("a", 1, 1, 2, 3, 4), held("b", 2, 9), held("c", 3, 1, 2, 5)])
    assert found == (of(2, "a", "c"), of(2, "a"), of(1, "c"), of(1, "b"))


def test_beginnings_of_beginnings_are_told_apart() -> None:
    found = holdings(
        [held("a", 1, 1, 2, 3), held("b", 2, 1, 2, 3, 4), held("c", 3, 1, 5), held("d", 4, 1)]
    )
    assert found == (of(1, "a", "b", "c", "d"), of(2, "a", "b"), of(1, "b"), of(1, "c"))


def test_siblings_hold_the_pages_of_their_prompt_together() -> None:
    bench = Bench(make_scheduler(24, page_tokens=4, park=in_place()))
    family = make_family(2, 18, max_new=6)
    bench.add(*family)
    bench.step_until(lambda _batch: all(seq.num_generated > 1 for seq in family))
    together = bench.scheduler.explain().holdings()[0]
    assert together == of(4, *(seq.request_id for seq in family))


def test_pages_kept_for_a_parked_request_are_those_that_nobody_else_uses() -> None:
    for park in (in_place(), copied()):
        bench = Bench(make_scheduler(24, page_tokens=4, park=park))
        first = make_sequence(range(12), arrival=1, max_new=30)
        second = make_sequence([*range(8), 77, 78, 79], arrival=2, max_new=30)
        bench.add(first)
        bench.step()
        bench.add(second)
        bench.step_until(lambda _batch, seq=second: seq.num_generated > 2)
        held_pages = len(second.page_table)
        assert bench.scheduler.explain().num_kept(second) == 0
        bench.scheduler.steer(ParkNow(request_id=second.request_id), bench.now_s)
        bench.step_until(lambda _batch, seq=second: seq.status is SeqStatus.PARKED)
        assert bench.scheduler.explain().num_kept(second) == held_pages - 2


def test_what_was_dropped_keeps_nothing() -> None:
    bench = Bench(make_scheduler(24, page_tokens=4))
    seq = make_sequence(12, max_new=30)
    bench.add(seq, make_sequence(4, arrival=1, max_new=30))
    bench.step_until(lambda _batch: seq.num_generated > 2)
    bench.scheduler.steer(ParkNow(request_id=seq.request_id), bench.now_s)
    bench.step_until(lambda _batch: seq.status is SeqStatus.PARKED)
    assert bench.scheduler.explain().num_kept(seq) == 0
