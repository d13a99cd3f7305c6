"""With very many waiting, a list of all of them and a step cost a walk along the line at the most."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from engine.core.config import ResumeOrder
from engine.core.entrance import Entrance
from engine.core.forecast import entry_of
from engine.core.lines import Rank
from engine.core.patience import Patience
from engine.core.types import Party, Sequence
from engine.runs import WaitKind
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.stepping import Bench

MANY = 1000


def bench_with_a_line(*, max_running: int, pages: int = 12) -> tuple[Bench, list[Sequence]]:
    """Two in the pool, by seats or by pages no room for more, and `MANY` waiting."""
    park = in_place(rotate_after_s=1e9)
    bench = Bench(make_scheduler(pages, page_tokens=4, max_running=max_running, park=park))
    bench.add(*(make_sequence(9, arrival=i, max_new=30) for i in range(2)))
    waiting = [make_sequence(16, arrival=2 + i, max_new=30) for i in range(MANY)]
    bench.add(*waiting)
    bench.step()
    assert bench.scheduler.num_waiting == MANY
    return bench, waiting


@pytest.mark.parametrize("max_running", [2, 2 * MANY])
def test_one_list_judges_each_in_line_at_most_once(
    max_running: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, waiting = bench_with_a_line(max_running=max_running)
    judged: Counter[str] = Counter()
    judge = Entrance.judge

    def count(self: Entrance, party: Party) -> object:
        judged.update([party[0].request_id])
        return judge(self, party)

    monkeypatch.setattr(Entrance, "judge", count)
    explain = bench.scheduler.explain()
    for seq in reversed(waiting):
        assert explain.wait_reason(seq) is not None
        assert explain.outlook(seq) is not None
    assert judged == dict.fromkeys((seq.request_id for seq in waiting), 1)


def test_one_list_asks_for_the_turn_of_each_in_line_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, waiting = bench_with_a_line(max_running=2 * MANY)
    asked: Counter[str] = Counter()
    stretch_s = Sequence.stretch_s

    def count(self: Sequence, now_s: float) -> float:
        asked.update([self.request_id])
        return stretch_s(self, now_s)

    explain = bench.scheduler.explain()
    monkeypatch.setattr(Sequence, "stretch_s", count)
    for seq in waiting:
        explain.outlook(seq)
    assert set(asked.values()) == {1}


def test_everybody_is_told_an_exact_place_and_only_a_few_of_those_before() -> None:
    bench, waiting = bench_with_a_line(max_running=2)
    explain = bench.scheduler.explain()
    reasons = [explain.wait_reason(seq) for seq in waiting]
    assert [reason and reason.place for reason in reasons] == list(range(1, MANY + 1))
    last = reasons[-1]
    assert last is not None
    assert (last.kind, last.num_ahead) == (WaitKind.BEHIND_OTHERS, MANY - 1)
    assert last.ahead_ids == ("r2", "r3", "r4")


def test_far_back_the_expected_wait_grows_with_every_place_though_few_turns_are_told() -> None:
    park = in_place(rotate_after_s=1e6)
    bench = Bench(make_scheduler(12, page_tokens=4, max_running=2, park=park))
    bench.add(make_sequence(9, arrival=0, max_new=30))
    bench.step()
    parked = [make_sequence(16, arrival=1 + i, max_new=30) for i in range(MANY)]
    for seq in parked:
        bench.scheduler.adopt(seq, bench.now_s)
    bench.step()
    explain = bench.scheduler.explain()
    outlooks = [one for one in map(explain.outlook, parked) if one is not None]
    latest = [entry_of(one, tokens_s=10).seconds for one in outlooks]
    assert len(latest) >= MANY - 2
    assert all(before < after for before, after in pairwise(latest))
    assert max(len(one.turns_s) for one in outlooks) < 100


def test_a_step_looks_at_no_deadline_that_has_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(make_scheduler(12, page_tokens=4, max_running=1, park=in_place()))
    bench.add(make_sequence(9, arrival=0, max_new=30))
    bench.add(*(make_sequence(arrival=1 + i, max_wait_s=20.0 + i) for i in range(MANY)))
    looked: Counter[str] = Counter()
    deadline_s = Patience._deadline_s

    def count(self: Patience, seq: Sequence) -> float:
        looked.update([seq.request_id])
        return deadline_s(self, seq)

    monkeypatch.setattr(Patience, "_deadline_s", count)
    bench.steps(23)
    assert looked == dict.fromkeys(("r1", "r2", "r3", "r4"), 1)
    assert list(bench.ends) == ["r1", "r2", "r3", "r4"]


def test_those_who_have_ended_long_before_their_deadline_are_not_kept() -> None:
    bench = Bench(make_scheduler(12, page_tokens=4, max_running=2, park=in_place()))
    for i in range(200):
        bench.add(make_sequence(arrival=i, max_new=1, max_wait_s=1e9))
        bench.step()
    bench.add(make_sequence(arrival=200, max_wait_s=1e9))
    bench.step()
    assert len(bench.scheduler._patience._limited) <= 20


@pytest.mark.parametrize("order", ResumeOrder)
def test_a_step_ranks_a_few_and_not_the_whole_line(
    order: ResumeOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    park = replace(in_place(rotate_after_s=1e9), resume_order=order)
    bench = Bench(make_scheduler(12, page_tokens=4, max_running=2, park=park))
    bench.add(*(make_sequence(9, arrival=i, max_new=30) for i in range(MANY)))
    bench.step()
    ranked: Counter[str] = Counter()
    key = Rank.key

    def count(self: Rank, seq: Sequence) -> tuple[float, ...]:
        ranked.update([seq.request_id])
        return key(self, seq)

    monkeypatch.setattr(Rank, "key", count)
    bench.steps(3)
    assert ranked.total() <= 6
