"""What was measured elsewhere about policies and resume orders: the simulator finds the same direction, claim by claim.

The figures quoted are those of another server with another planner, on one GPU. Where a claim does not hold here the
docstring of its test says why. Eight chats overflow 8192 cells several times over; four hardly do.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.core.config import ParkConfig, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.cost_model import Calibration
from engine.core.victim_policies import VICTIM_POLICIES
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Arrival, Shape, Trace, make_trace

CPU = Calibration()
"""Two cores: what a step takes grows with every chat in it."""

GPU = Calibration(
    step_s=0.0035,
    decode_token_s=0.0002,
    prefill_token_s=0.0001,
    context_token_s=2e-8,
    token_bytes=65536,
    copy_out_bytes_s=5e9,
    copy_in_bytes_s=5e9,
    park_s=1e-4,
)
"""A step takes about as long for many chats as for one: what counts is how many are in the pool."""

NEVER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """A scheduler's settings and the machine it runs on; each chat has a seat unless `seats` says otherwise."""

    policy: str = "fcfs"
    order: ResumeOrder = ResumeOrder.HEAD
    pool_tokens: int = 8192
    seats: int = 0
    rotate_after_s: float = 2.0
    memory: ParkMemory = ParkMemory.COPIED
    budget_bytes: int = -1
    machine: Calibration = CPU

    def run(self, trace: Trace) -> Outcome:
        park = ParkConfig(
            memory=self.memory,
            page_bytes=32 * self.machine.token_bytes,
            budget_bytes=self.budget_bytes,
            resume_order=self.order,
            rotate_after_s=self.rotate_after_s,
        )
        config = SchedulerConfig(
            num_pages=self.pool_tokens // 32,
            max_running=self.seats or len(trace.arrivals),
            victim_policy=self.policy,
            park=park,
        )
        return Simulator(config, trace, self.machine).run()

    def total(self, *shapes: Shape, num_chats: int = 8, num_seeds: int = 3) -> Total:
        """Sums over traces of each shape; of the longest waits, the longest."""
        runs = [
            self.run(make_trace(shape, num_chats, window_tokens=self.pool_tokens, seed=seed))
            for shape in shapes
            for seed in range(num_seeds)
        ]
        return Total(
            makespan_s=sum(run.makespan_s for run in runs),
            completion_s=sum(run.mean_completion_s for run in runs),
            longest_wait_s=max(run.longest_wait_s for run in runs),
            parks=sum(run.parks for run in runs),
            copied=sum(run.tokens_copied for run in runs),
            recomputed=sum(run.tokens_recomputed for run in runs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    makespan_s: float
    completion_s: float
    longest_wait_s: float
    parks: int
    copied: int
    recomputed: int


def even(
    num_chats: int, prompt: int, reply: int, *, gap_s: float = 0.0, is_limited: bool = False
) -> Trace:
    """Chats of one length, one every `gap_s`."""
    arrivals = tuple(
        Arrival(at_s=index * gap_s, prompt_tokens=prompt, reply_tokens=reply, is_limited=is_limited)
        for index in range(num_chats)
    )
    return Trace(name="even", arrivals=arrivals)


# --- the resume order


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "smallest"])
@pytest.mark.parametrize(
    ("shape", "num_seeds"), [(Shape.MEASURED, 1), (Shape.UNIFORM, 2), (Shape.HEAVY, 4)]
)
def test_head_of_line_at_least_halves_the_longest_wait_of_eight_chats(
    policy: str, shape: Shape, num_seeds: int
) -> None:
    """60.4 to 25.8 s (measured), 33.8 to 14.8 (uniform), 72.6 to 23.6 (heavy), makespans within 1%."""
    head, passing = (
        Set(policy=policy, order=order).total(shape, num_seeds=num_seeds)
        for order in (ResumeOrder.HEAD, ResumeOrder.PASS)
    )
    assert head.longest_wait_s <= passing.longest_wait_s / 2
    assert head.makespan_s == pytest.approx(passing.makespan_s, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [Shape.MEASURED, Shape.HEAVY])
def test_head_of_line_is_not_worse_for_eight_chats_in_twice_the_cells(shape: Shape) -> None:
    """24.4 to 16.7 s and 78.2 to 27.8 s there, makespans 1.06 and 1.03.

    Here eight of these chats hardly overflow 16384 cells, so that there is little to win.
    """
    head, passing = (
        Set(order=order, pool_tokens=16384).total(shape, num_seeds=2)
        for order in (ResumeOrder.HEAD, ResumeOrder.PASS)
    )
    assert head.longest_wait_s <= passing.longest_wait_s
    assert head.makespan_s <= 1.06 * passing.makespan_s


@pytest.mark.slow
def test_head_of_line_shortens_the_longest_wait_where_twice_the_cells_overflow_too() -> None:
    """The claim for 16384 cells, with as many chats as overflow them: sixteen."""
    head, passing = (
        Set(order=order, pool_tokens=16384).total(Shape.UNIFORM, num_chats=16, num_seeds=1)
        for order in (ResumeOrder.HEAD, ResumeOrder.PASS)
    )
    assert head.longest_wait_s <= passing.longest_wait_s / 2
    assert head.makespan_s <= 1.06 * passing.makespan_s


@pytest.mark.slow
def test_the_orders_differ_little_for_equal_chats_on_half_as_many_seats() -> None:
    """Eight equal chats on four seats: walls of 129 s and waits of 14 s either way."""
    head, passing = (
        Set(order=order, seats=4).run(even(8, 1000, 1500))
        for order in (ResumeOrder.HEAD, ResumeOrder.PASS)
    )
    assert head.makespan_s == pytest.approx(passing.makespan_s, rel=0.03)
    assert head.longest_wait_s == pytest.approx(passing.longest_wait_s, rel=0.1)


@pytest.mark.parametrize("policy", ["fcfs", "cost"])
def test_a_long_chat_among_short_ones_is_not_kept_out_by_them(policy: str) -> None:
    """A chat parked at 4160 tokens among uneven ones: from 7 min 22 s of silence to 28 s.

    There a parked chat could be passed for ever. Here the order that lets others pass is bounded
    too, since waiting moves up, so that head of line wins by a factor of two and not of fifteen.
    """
    short = tuple(
        Arrival(at_s=0, prompt_tokens=500 + 150 * n, reply_tokens=500 + 400 * n) for n in range(7)
    )
    long = Arrival(at_s=0, prompt_tokens=1000, reply_tokens=6000)
    trace = Trace(name="uneven", arrivals=(*short, long))
    head, passing = (
        Set(policy=policy, order=order).run(trace) for order in (ResumeOrder.HEAD, ResumeOrder.PASS)
    )
    assert head.longest_wait_s <= passing.longest_wait_s / 2


# --- who is parked


@pytest.mark.slow
@pytest.mark.parametrize("pool_tokens", [8192, 16384])
def test_four_chats_differ_little_whatever_the_policy(pool_tokens: int) -> None:
    """All within 1%."""
    found = [
        Set(policy=policy, pool_tokens=pool_tokens).total(Shape.UNIFORM, num_chats=4)
        for policy in VICTIM_POLICIES
    ]
    times = [total.makespan_s for total in found]
    assert max(times) <= 1.01 * min(times)


@pytest.mark.parametrize("gap_s", [0.0, 1.5], ids=["at once", "one after the other"])
def test_four_equal_chats_in_2048_cells_beat_four_in_a_row_with_every_policy(gap_s: float) -> None:
    """4 x 900 tokens: 11.0 to 11.6 s, or 12.9 to 13.0 staggered, where four in a row take 13.4."""
    walls = [
        Set(policy=policy, pool_tokens=2048).run(even(4, 100, 900, gap_s=gap_s)).makespan_s
        for policy in VICTIM_POLICIES
    ]
    in_a_row_s = 4 * Set(pool_tokens=2048).run(even(1, 100, 900)).makespan_s
    assert max(walls) <= 1.06 * min(walls)
    assert max(walls) <= in_a_row_s / 1.15


@pytest.mark.slow
def test_parking_the_largest_copies_most() -> None:
    """40 to 50% more cells. Ordinary parks alone: rotation takes whoever frees fewest pages, whatever the policy."""
    copied = {
        policy: Set(policy=policy, rotate_after_s=NEVER_S)
        .total(Shape.UNIFORM, Shape.HEAVY, num_seeds=6)
        .copied
        for policy in ("largest", "smallest", "youngest")
    }
    assert copied["largest"] > 1.2 * copied["smallest"]
    assert copied["largest"] > 1.1 * copied["youngest"]


@pytest.mark.full
@pytest.mark.parametrize("rotate_after_s", [2.0, NEVER_S])
def test_largest_is_the_worst_of_all_policies(rotate_after_s: float) -> None:
    totals = {
        policy: Set(policy=policy, rotate_after_s=rotate_after_s).total(*Shape, num_seeds=6)
        for policy in VICTIM_POLICIES
    }
    assert max(totals, key=lambda policy: totals[policy].copied) == "largest"
    assert max(totals, key=lambda policy: totals[policy].completion_s) == "largest"


@pytest.mark.slow
def test_where_a_step_costs_the_same_for_many_largest_takes_longest() -> None:
    """5 to 6% longer. On two cores it is not: there a step costs by the chat, so idle seats cost no time."""
    spans = {
        policy: Set(policy=policy, machine=GPU).total(Shape.MEASURED).makespan_s
        for policy in ("fcfs", "smallest", "youngest", "largest")
    }
    others = [span for policy, span in spans.items() if policy != "largest"]
    assert spans["largest"] > 1.02 * max(others)


@pytest.mark.slow
def test_youngest_takes_as_long_as_smallest() -> None:
    """Within 1%."""
    youngest, smallest = (Set(policy=policy).total(*Shape) for policy in ("youngest", "smallest"))
    assert youngest.makespan_s == pytest.approx(smallest.makespan_s, rel=0.01)


@pytest.mark.parametrize(("prompt", "reply", "most_parks"), [(2000, 512, 3), (2992, 1024, 8)])
def test_fcfs_and_cost_park_equally_often_and_recompute_nothing(
    prompt: int, reply: int, most_parks: int
) -> None:
    """2 and 3 parks there, no recompute; fcfs two to three times as fast on a card shared with others.

    Here the two choose the same victims for equal chats, and are equally fast. Of the second load
    only two chats fit at a time, so that turns are taken, which copies more often than there.
    """
    trace = even(4, prompt, reply, is_limited=True)
    fcfs, cost = (Set(policy=policy, machine=GPU).run(trace) for policy in ("fcfs", "cost"))
    assert 1 <= fcfs.parks == cost.parks <= most_parks
    assert fcfs.tokens_recomputed == cost.tokens_recomputed == 0
    assert fcfs.makespan_s <= 1.01 * cost.makespan_s


def test_parking_beats_two_at_a_time() -> None:
    """299 against 261 tok/s for 4 x (2000 + 512)."""
    trace = even(4, 2000, 512, is_limited=True)
    parking, in_pairs = (Set(machine=GPU, seats=seats).run(trace) for seats in (4, 2))
    assert in_pairs.parks == 0
    assert parking.makespan_s < in_pairs.makespan_s


@pytest.mark.parametrize("memory", [ParkMemory.COPIED, ParkMemory.IN_PLACE])
def test_where_only_two_fit_parking_all_four_costs_little(memory: ParkMemory) -> None:
    """314 against 183 tok/s for 4 x (2992 + 1024), of which exactly two fit.

    There two at a time was another server's mode and slower by itself. On the same engine pairs
    lose nothing when they are equal, and four who take turns must pay for their copies.
    """
    trace = even(4, 2992, 1024, is_limited=True)
    budget = 1 << 40
    parking, in_pairs = (
        Set(machine=GPU, seats=seats, memory=memory, budget_bytes=budget).run(trace)
        for seats in (4, 2)
    )
    assert parking.makespan_s <= 1.1 * in_pairs.makespan_s


# --- keeping the state, or dropping it


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "smallest"])
@pytest.mark.parametrize("shape", [Shape.UNIFORM, Shape.HEAVY])
def test_keeping_the_state_beats_computing_it_again(policy: str, shape: Shape) -> None:
    """By 3 to 7% of the makespan; more on two cores, where reading a prompt again is dear."""
    kept, dropped = (
        Set(policy=policy, memory=memory).total(shape, num_seeds=2)
        for memory in (ParkMemory.COPIED, ParkMemory.NONE)
    )
    assert dropped.recomputed > 0 == kept.recomputed
    assert dropped.makespan_s > 1.03 * kept.makespan_s


@pytest.mark.slow
def test_the_tighter_the_budget_the_more_is_recomputed() -> None:
    """From 39 swaps and 27 recomputes at 150 MiB to recomputes alone at 64, throughput hardly changed.

    The other claim, that there are more parks then, does not hold here: a state that cannot be kept
    gives way to the head of the line only after half a minute, so that there are fewer.
    """
    none, some, all_of_it = (
        Set(policy="smallest", machine=GPU, budget_bytes=budget_bytes).total(Shape.UNIFORM)
        for budget_bytes in (1, 256 << 20, 8 << 30)
    )
    assert none.copied == all_of_it.recomputed == 0
    assert none.recomputed > some.recomputed > 0
    assert all_of_it.copied > some.copied > 0
    assert none.makespan_s <= 1.12 * all_of_it.makespan_s
