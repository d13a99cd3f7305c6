"""The simulator's clock is the cost model's, its decisions are the scheduler's, and it reproduces what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.config import ParkConfig, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.cost_model import Calibration, CostModel
from engine.sim.report import Matrix, Row, format_table, run_matrix
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Arrival, Shape, Trace

CALIBRATION = Calibration()
MODEL = CostModel(CALIBRATION)
COPIED = ParkConfig(memory=ParkMemory.COPIED, page_bytes=32 * CALIBRATION.token_bytes)


def simulate(
    trace: Trace, *, pool_tokens: int = 8192, park: ParkConfig = COPIED, seats: int = 4
) -> Outcome:
    config = SchedulerConfig(num_pages=pool_tokens // 32, max_running=seats, park=park)
    return Simulator(config, trace, CALIBRATION).run()


def chats(*reply_tokens: int, prompt: int = 200, at_s: float = 0.0, limited: bool = False) -> Trace:
    arrivals = tuple(
        Arrival(at_s=at_s, prompt_tokens=prompt, reply_tokens=n, is_limited=limited)
        for n in reply_tokens
    )
    return Trace(name="chats", arrivals=arrivals)


# --- the clock


def test_one_chat_takes_its_prompt_and_its_tokens() -> None:
    outcome = simulate(chats(10))
    steps = [(0, 200), *((200 + i, 1) for i in range(9))]
    assert outcome.makespan_s == pytest.approx(sum(MODEL.step_s([step]) for step in steps))
    assert outcome.tokens_generated == 10
    assert (outcome.parks, outcome.tokens_copied, outcome.tokens_recomputed) == (0, 0, 0)


def test_time_passes_while_nobody_is_there() -> None:
    early, late = simulate(chats(10)), simulate(chats(10, at_s=100.0))
    assert late.makespan_s == pytest.approx(100.0 + early.makespan_s)
    assert late.mean_completion_s == pytest.approx(early.mean_completion_s)


def test_the_wait_is_the_longest_stretch_outside_the_pool() -> None:
    alone = simulate(chats(100)).makespan_s
    outcome = simulate(chats(100, 100), seats=1)
    assert outcome.longest_wait_s == pytest.approx(alone, rel=0.1)


@pytest.mark.parametrize("is_async", [False, True])
def test_copied_parks_cost_their_bytes_unless_they_run_beside_the_steps(*, is_async: bool) -> None:
    trace = chats(900, 900, 900, limited=True)
    park = replace(COPIED, is_async=is_async)
    copied = simulate(trace, pool_tokens=2048, park=park)
    slow = replace(CALIBRATION, copy_out_bytes_s=1e7, copy_in_bytes_s=1e7)
    config = SchedulerConfig(num_pages=64, park=park)
    slowly = Simulator(config, trace, slow).run()
    assert copied.tokens_copied > 0
    assert copied.tokens_generated == slowly.tokens_generated == 2700
    if not is_async:
        extra_s = slowly.tokens_copied * CALIBRATION.token_bytes / 1e7
        assert slowly.makespan_s - copied.makespan_s > extra_s / 2


def test_parks_in_place_copy_nothing_and_a_recompute_computes_again() -> None:
    trace = chats(900, 900, 900, limited=True)
    in_place = ParkConfig(
        memory=ParkMemory.IN_PLACE, budget_bytes=1 << 40, arena_pages=1000, page_bytes=1
    )
    kept = simulate(trace, pool_tokens=2048, park=in_place)
    assert kept.parks > 0
    assert (kept.tokens_copied, kept.tokens_recomputed) == (0, 0)
    dropped = simulate(trace, pool_tokens=2048, park=ParkConfig())
    assert dropped.tokens_recomputed > 0
    assert dropped.makespan_s > kept.makespan_s


def test_the_same_trace_gives_the_same_outcome() -> None:
    trace = chats(400, 900, 100, 700)
    assert simulate(trace, pool_tokens=2048) == simulate(trace, pool_tokens=2048)


# --- what is known of the policies


def rows_of(matrix: Matrix) -> dict[tuple[str, str, str], Row]:
    return {(row.shape, row.policy, row.order): row for row in run_matrix(matrix)}


EIGHT = Matrix(chats=(8,), pool_tokens=(8192,), seeds=2, park=COPIED)
"""Eight chats in 8192 cells."""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "smallest"])
def test_head_of_line_at_least_halves_the_longest_wait_of_eight_chats(policy: str) -> None:
    rows = rows_of(replace(EIGHT, policies=(policy,)))
    for shape in Shape:
        head, passing = (rows[shape.value, policy, order.value] for order in ResumeOrder)
        assert head.longest_wait_s <= passing.longest_wait_s / 1.9, shape
        assert head.makespan_s == pytest.approx(passing.makespan_s, rel=0.06), shape
    ratio = sum(rows[s.value, policy, "pass"].longest_wait_s for s in Shape) / sum(
        rows[s.value, policy, "head"].longest_wait_s for s in Shape
    )
    assert ratio >= 2.5


def totals(matrix: Matrix) -> dict[str, tuple[float, float]]:
    """Tokens copied and mean completion of each policy, summed over the kinds of traces."""
    rows = run_matrix(matrix)
    return {
        policy: (
            sum(row.tokens_copied for row in rows if row.policy == policy),
            sum(row.mean_completion_s for row in rows if row.policy == policy),
        )
        for policy in matrix.policies
    }


VICTIMS_ALONE = replace(
    EIGHT,
    seeds=6,
    orders=(ResumeOrder.HEAD,),
    park=replace(COPIED, rotate_after_s=1e9),
)
"""Rotation takes whoever frees fewest pages, whatever the policy: without it the policies show."""


@pytest.mark.slow
def test_parking_the_largest_copies_most() -> None:
    matrix = replace(
        VICTIMS_ALONE,
        shapes=(Shape.UNIFORM, Shape.HEAVY),
        policies=("largest", "smallest", "youngest"),
    )
    copied = {policy: tokens for policy, (tokens, _) in totals(matrix).items()}
    assert copied["largest"] > 1.2 * copied["smallest"]
    assert copied["largest"] > 1.1 * copied["youngest"]


@pytest.mark.full
@pytest.mark.parametrize("rotate_after_s", [2.0, 1e9])
def test_largest_is_the_worst_of_all_policies(rotate_after_s: float) -> None:
    park = replace(COPIED, rotate_after_s=rotate_after_s)
    figures = totals(replace(VICTIMS_ALONE, park=park))
    for figure in (0, 1):
        assert max(figures, key=lambda policy: figures[policy][figure]) == "largest"


@pytest.mark.slow
def test_four_chats_differ_little_whatever_the_policy() -> None:
    matrix = replace(EIGHT, chats=(4,), orders=(ResumeOrder.HEAD,), shapes=(Shape.UNIFORM,))
    times = [row.makespan_s for row in run_matrix(matrix)]
    assert max(times) < 1.02 * min(times)


# --- the table


def test_rows_are_heard_as_they_are_done_and_make_an_aligned_table() -> None:
    matrix = Matrix(
        shapes=(Shape.UNIFORM,), chats=(2,), pool_tokens=(4096,), policies=("fcfs",), seeds=1
    )
    heard: list[Row] = []
    rows = run_matrix(matrix, heard.append)
    assert rows == heard
    assert [(row.policy, row.order, row.chats) for row in rows] == [
        ("fcfs", "head", 2),
        ("fcfs", "pass", 2),
    ]
    table = format_table(rows)
    lines = table.splitlines()
    assert lines[0].split()[:5] == ["shape", "chats", "pool_tokens", "policy", "order"]
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1
    assert table.endswith("\n")


def test_a_table_of_nothing_is_its_heading() -> None:
    assert format_table([]).count("\n") == 1
