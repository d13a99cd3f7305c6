"""`layby simulate`: what parking policies and resume orders make of the same chats, on a virtual clock.

Prints a line as soon as it is known. No model, no torch; Qt only to draw the plot, if one is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.sim.calibration import Calibration
from engine.sim.matrix import Case, Row, all_cases, simulate

_HEAD = (
    "shape     chats   pool  policy    order  makespan s  mean end s  longest wait s"
    "  parks  cells copied  recomputed\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What to compare; names are those of `engine.runs.POLICY_NAMES` and `RESUME_NAMES`."""

    policies: tuple[str, ...]
    orders: tuple[str, ...]
    num_seeds: int
    plot: Path | None = None
    """PNG file to draw the longest waits into; None: none."""
    calibration: Calibration | None = None
    """The machine whose clock it is; None: one that the simulator knows by itself."""


def run_simulation(simulation: Simulation, cases: Sequence[Case] | None = None) -> int:
    """Print the table of all cases, or of `cases`, and draw the plot; the exit code.

    Raises OSError when the plot cannot be written, where that can be known before anything else.
    """
    if simulation.plot is not None:
        check_plot(simulation.plot)
    sys.stdout.write(
        f"means over the seeds ({simulation.num_seeds}); the longest wait is the longest of all of them\n"
    )
    sys.stdout.write(_HEAD)
    rows = []
    for case in cases if cases is not None else all_cases():
        for policy in simulation.policies:
            for order in simulation.orders:
                row = simulate(
                    case,
                    policy,
                    order,
                    num_seeds=simulation.num_seeds,
                    calibration=simulation.calibration,
                )
                sys.stdout.write(line_of(row))
                sys.stdout.flush()
                rows.append(row)
    if simulation.plot is not None:
        _draw(rows, simulation.plot)
    return 0


def check_plot(path: Path) -> None:
    """Raises OSError unless a plot can be written there. Writes nothing."""
    place = path if path.exists() else path.parent
    is_place = path.is_file() if path.exists() else place.is_dir()
    if path.suffix.lower() != ".png" or not is_place or not os.access(place, os.W_OK):
        raise OSError(
            f"the plot cannot be written to {path}; give a file ending in .png in a folder there is"
        )


def line_of(row: Row) -> str:
    """The table's line."""
    case, outcome = row.case, row.outcome
    return (
        f"{case.shape.value:<9} {case.num_chats:>5} {case.pool_tokens:>6}  "
        f"{row.policy:<9} {row.resume_order:<5} {outcome.makespan_s:>11.1f} "
        f"{outcome.mean_completion_s:>11.1f} {outcome.longest_wait_s:>15.1f} {outcome.parks:>6.1f} "
        f"{outcome.tokens_copied:>13} {outcome.tokens_recomputed:>11}\n"
    )


def _draw(rows: Sequence[Row], path: Path) -> None:
    # Here and not above: the table needs no Qt.
    from studio.views.bar_chart import BarChart, draw_png

    series = tuple(dict.fromkeys(f"{row.policy}, {row.resume_order}" for row in rows))
    cases = tuple(dict.fromkeys(row.case for row in rows))
    waits = [row.outcome.longest_wait_s for row in rows]
    chart = BarChart(
        title="Longest wait in seconds, parked or in line (layby simulate)",
        series=series,
        groups=tuple(
            f"{case.shape.value}, {case.num_chats} chats, {case.pool_tokens}" for case in cases
        ),
        values=tuple(
            tuple(waits[start : start + len(series)]) for start in range(0, len(rows), len(series))
        ),
    )
    draw_png(chart, path)
