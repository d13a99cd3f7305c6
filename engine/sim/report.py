"""Compares policies and orders of return on the same traces: rows of figures, and a table of them.

Pure: the same arguments give the same rows. Drawing and printing are the studio's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, fields, replace

from engine.core.config import ParkConfig, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.cost_model import Calibration
from engine.core.victim_policies import VICTIM_POLICIES
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Shape, Trace, make_trace

PAGE_TOKENS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """What is compared: every policy in every order, on every shape, number of chats and size of pool."""

    shapes: tuple[Shape, ...] = tuple(Shape)
    chats: tuple[int, ...] = (4, 8)
    pool_tokens: tuple[int, ...] = (8192, 16384)
    policies: tuple[str, ...] = tuple(sorted(VICTIM_POLICIES))
    orders: tuple[ResumeOrder, ...] = tuple(ResumeOrder)
    seeds: int = 3
    """Traces of each kind; figures are means over them, the longest wait the longest of all."""
    park: ParkConfig = field(default_factory=lambda: ParkConfig(memory=ParkMemory.COPIED))
    """How parks are done; the order of return is set by the matrix, page bytes by the calibration."""
    step_tokens: int = 256
    calibration: Calibration = field(default_factory=Calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One policy in one order on one kind of trace."""

    shape: str
    chats: int
    pool_tokens: int
    policy: str
    order: str
    makespan_s: float
    mean_completion_s: float
    longest_wait_s: float
    parks: float
    rotations: float
    tokens_copied: float
    tokens_recomputed: float
    tokens_s: float
    """Generated tokens per second over the whole run."""


def run_matrix(matrix: Matrix, on_row: Callable[[Row], object] = lambda row: None) -> list[Row]:
    """Simulate everything; `on_row` hears each row as it is done, and may raise to stop."""
    rows = []
    for shape in matrix.shapes:
        for chats in matrix.chats:
            for pool_tokens in matrix.pool_tokens:
                traces = [
                    make_trace(shape, chats, window_tokens=pool_tokens, seed=seed)
                    for seed in range(matrix.seeds)
                ]
                for policy in matrix.policies:
                    for order in matrix.orders:
                        config = make_config(matrix, pool_tokens, policy, order, chats)
                        row = summarise(shape.value, config, traces, matrix.calibration)
                        rows.append(row)
                        on_row(row)
    return rows


def make_config(
    matrix: Matrix, pool_tokens: int, policy: str, order: ResumeOrder, /, seats: int
) -> SchedulerConfig:
    """The scheduler of one run of the matrix."""
    page_bytes = matrix.calibration.token_bytes * PAGE_TOKENS
    return SchedulerConfig(
        num_pages=pool_tokens // PAGE_TOKENS,
        page_tokens=PAGE_TOKENS,
        max_running=seats,
        step_tokens=matrix.step_tokens,
        victim_policy=policy,
        park=replace(matrix.park, resume_order=order, page_bytes=page_bytes),
    )


def summarise(
    name: str, config: SchedulerConfig, traces: Iterable[Trace], calibration: Calibration
) -> Row:
    """Play some traces with one configuration. Raises ValueError if there are none."""
    outcomes = [Simulator(config, trace, calibration).run() for trace in traces]
    if not outcomes:
        raise ValueError("no trace was given to simulate")

    def mean(figure: Callable[[Outcome], float]) -> float:
        return sum(map(figure, outcomes)) / len(outcomes)

    return Row(
        shape=name,
        chats=config.max_running,
        pool_tokens=config.pool_tokens,
        policy=config.victim_policy,
        order=config.park.resume_order.value,
        makespan_s=mean(lambda o: o.makespan_s),
        mean_completion_s=mean(lambda o: o.mean_completion_s),
        longest_wait_s=max(o.longest_wait_s for o in outcomes),
        parks=mean(lambda o: o.parks),
        rotations=mean(lambda o: o.rotations),
        tokens_copied=mean(lambda o: o.tokens_copied),
        tokens_recomputed=mean(lambda o: o.tokens_recomputed),
        tokens_s=mean(lambda o: o.tokens_generated / o.makespan_s),
    )


def format_table(rows: Seq[Row]) -> str:
    """The rows as aligned text with a heading, one line each; ends with a newline."""
    names = [one.name for one in fields(Row)]
    lines = [names, *([_cell(getattr(row, name)) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    return "".join(_line(line, widths, rows) for line in lines)


def _line(cells: list[str], widths: list[int], rows: Seq[Row]) -> str:
    is_text = [isinstance(getattr(rows[0], one.name), str) if rows else True for one in fields(Row)]
    parts = (
        cell.ljust(width) if text else cell.rjust(width)
        for cell, width, text in zip(cells, widths, is_text, strict=True)
    )
    return "  ".join(parts).rstrip() + "\n"


def _cell(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"
    return str(value)
