"""A wait is told as a range: from the rules at first, and from how long the last waits took."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.config import GUARD_S, ParkMemory
from engine.core.forecast import Entry, Forecaster, Outlook, Resident, entry_of
from engine.core.types import SeqStatus, Sequence
from fakes.builders import make_sequence
from fakes.foretold import Chats, waits_of

# --- the rules


def seconds(outlook: Outlook, tokens_s: float = 10) -> float:
    return entry_of(outlook, tokens_s=tokens_s).seconds


def test_a_speed_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens_s is 0, it must be above 0"):
        entry_of(Outlook(pages_lacking=1), tokens_s=0)


def test_one_that_lacks_nothing_enters_at_once() -> None:
    assert seconds(Outlook(pages_lacking=0, residents=(Resident(4, 10),), turns_s=(2.0,))) == 0


def test_where_nobody_gives_way_the_ends_of_enough_residents_are_waited_for() -> None:
    residents = (Resident(4, 100), Resident(4, 50), Resident(90, 1000))
    outlook = Outlook(pages_lacking=8, residents=residents)
    assert entry_of(outlook, tokens_s=10) == Entry(10.0, is_turn=False)
    assert seconds(replace(outlook, pages_lacking=4)) == 5.0
    assert seconds(replace(outlook, turns_s=(30.0,))) == 10.0, "an end comes before the turn"


def test_where_residents_give_way_the_turn_comes_first() -> None:
    outlook = Outlook(pages_lacking=8, residents=(Resident(9, 5000),), turns_s=(2.0,))
    assert entry_of(outlook, tokens_s=10) == Entry(4.0, is_turn=True)
    assert seconds(outlook, tokens_s=64) == 2.5, "32 tokens are enough of a turn"


def test_further_back_in_line_the_turn_comes_later_and_an_end_may_be_of_no_use() -> None:
    outlook = Outlook(pages_lacking=8, residents=(Resident(10, 5000),), turns_s=(1.0, 2.0, 0.0))
    assert seconds(outlook) == 7.0
    assert seconds(replace(outlook, residents=(Resident(10, 15),))) == 7.0


def test_seats_are_waited_for_like_pages() -> None:
    residents = (Resident(4, 100), Resident(4, 50))
    outlook = Outlook(pages_lacking=0, seats_lacking=2, residents=residents)
    assert seconds(outlook) == 10.0
    assert seconds(replace(outlook, seats_lacking=3, ahead_tokens=80)) == 18.0


# --- the range


class Line:
    """A forecaster and a clock; each `wait` is one sequence that waits so long for an entry foretold."""

    def __init__(self) -> None:
        self.forecaster, self.now_s, self._arrivals = Forecaster(), 0.0, 0

    def newcomer(self) -> Sequence:
        self._arrivals += 1
        return make_sequence(arrival=self._arrivals)

    def tell(self, seq: Sequence, foretold_s: float) -> tuple[float, float]:
        told = self.forecaster.tell(seq, Entry(foretold_s, is_turn=True), self.now_s)
        assert told is not None
        return told

    def wait(self, seconds: float, *, foretold_s: float) -> None:
        seq = self.newcomer()
        self.tell(seq, foretold_s)
        self.now_s += seconds
        seq.status = SeqStatus.RUNNING
        self.forecaster.learn([seq], self.now_s)


def test_at_first_a_range_lies_around_what_the_rules_say() -> None:
    line = Line()
    soonest, latest = line.tell(line.newcomer(), 10.0)
    assert 0 <= soonest < 10 < latest < 30


def test_waits_that_took_longer_than_foretold_make_ranges_reach_further() -> None:
    line = Line()
    for _ in range(8):
        line.wait(30.0, foretold_s=10.0)
    _, latest = line.tell(line.newcomer(), 10.0)
    assert latest >= 30.0


def test_waits_that_were_short_make_ranges_narrow() -> None:
    line = Line()
    for _ in range(40):
        line.wait(2.0, foretold_s=10.0)
    soonest, latest = line.tell(line.newcomer(), 10.0)
    assert latest == pytest.approx(2.0)
    assert soonest <= 2.0


def test_waits_for_ends_and_waits_for_turns_are_learned_apart() -> None:
    line = Line()
    seq = line.newcomer()
    before = line.forecaster.tell(seq, Entry(10.0, is_turn=False), 0.0)
    for _ in range(40):
        line.wait(2.0, foretold_s=10.0)
    other = line.newcomer()
    assert line.forecaster.tell(other, Entry(10.0, is_turn=False), line.now_s) == before


def test_while_nothing_changes_the_moments_told_stay_where_they_are() -> None:
    line, moments = Line(), []
    seq = line.newcomer()
    for passed_s in (0.0, 2.0, 4.0, 8.0):
        line.now_s = passed_s
        moments.append(passed_s + line.tell(seq, 10.0 - passed_s)[1])
    assert moments == pytest.approx([moments[0]] * 4)


def test_a_range_moves_with_the_entry_when_somebody_is_let_go_first() -> None:
    line = Line()
    seq = line.newcomer()
    _, before = line.tell(seq, 2.0)
    _, after = line.tell(seq, 10.0)
    assert after == pytest.approx(before + 8.0)


def test_who_is_overdue_is_not_told_again_and_again_that_it_is_a_matter_of_moments() -> None:
    line = Line()
    seq = line.newcomer()
    line.tell(seq, 2.0)
    line.now_s = 20.0
    assert line.tell(seq, 0.1)[1] == pytest.approx(10.0)


def test_nothing_is_told_where_it_could_be_seconds_as_well_as_minutes() -> None:
    line = Line()
    assert line.forecaster.tell(line.newcomer(), Entry(1000.0, is_turn=False), 0.0) is None
    assert line.forecaster.tell(line.newcomer(), Entry(20.0, is_turn=False), 0.0) is not None


@pytest.mark.parametrize("how", ["held by hand", "ended", "of a model that is gone", "parked anew"])
def test_a_wait_that_did_not_end_in_the_pool_teaches_nothing(how: str) -> None:
    line = Line()
    seq = line.newcomer()
    before = line.tell(seq, 10.0)
    line.now_s = 500.0
    seq.is_held = how == "held by hand"
    seq.status = SeqStatus.FINISHED if how == "ended" else SeqStatus.WAITING
    seq.num_parks += how == "parked anew"
    line.forecaster.learn([] if how == "of a model that is gone" else [seq], line.now_s)
    assert line.tell(line.newcomer(), 10.0) == before
    assert not line.forecaster._told.keys() & {seq}


# --- how well it holds

WORKLOADS = {
    "four long stories in a tiny pool": Chats(pool_tokens=1024),
    "the same, some let go first": Chats(pool_tokens=1024, calls_s=5.0, slowness=3.0),
    "the same on a slow machine": Chats(pool_tokens=1024, calls_s=8.0, slowness=8.0, turns=2),
    "three of them": Chats(pool_tokens=1024, people=3, calls_s=6.0, slowness=6.0, turns=2),
    "replies of all lengths": Chats(pool_tokens=2048, reply=(100, 1500), calls_s=10.0),
    "replies with limits": Chats(
        pool_tokens=4096, prompt=(100, 400), reply=(300, 3000), is_limited=True
    ),
    "fewer seats than people": Chats(pool_tokens=4096, people=6, seats=2, reply=(100, 600)),
    "eight in a pool for three": Chats(
        pool_tokens=8192, people=8, seats=8, prompt=(700, 1300), reply=(500, 3000), turns=2
    ),
    "some matter more": Chats(pool_tokens=2048, people=5, reply=(100, 1500), priorities=(0, 1, 2)),
    "one is pinned": Chats(pool_tokens=2048, reply=(100, 1800), pinned=1),
    "states are copied": Chats(
        pool_tokens=2048, people=5, reply=(100, 1500), memory=ParkMemory.COPIED
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_most_waits_end_within_the_range_that_was_told_first(name: str) -> None:
    waits = waits_of(WORKLOADS[name], seeds=3)
    assert len(waits) >= 30
    ends = [(wait.until_s or 0.0, *wait.told[0]) for wait in waits]
    in_time = sum(until_s <= max(latest_s, at_s + 1.0) for until_s, at_s, _, latest_s in ends)
    inside = sum(
        soonest_s - 1.0 <= until_s <= max(latest_s, at_s + 1.0)
        for until_s, at_s, soonest_s, latest_s in ends
    )
    assert in_time >= 0.8 * len(waits)
    assert inside >= 0.7 * len(waits)


@pytest.mark.parametrize("name", [name for name, chats in WORKLOADS.items() if chats.calls_s])
def test_who_is_let_go_first_enters_as_soon_as_somebody_has_had_the_least_turn(name: str) -> None:
    called = [wait for wait in waits_of(WORKLOADS[name], seeds=2) if wait.called_s is not None]
    took_s = sorted((wait.until_s or 0.0) - (wait.called_s or 0.0) for wait in called)
    assert took_s[len(took_s) // 2] < 0.1, "most enter with the next step"
    assert took_s[-1] <= GUARD_S
