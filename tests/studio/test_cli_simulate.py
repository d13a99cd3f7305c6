"""`layby simulate`: its arguments, its table, its plot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from engine.sim.matrix import Case, Row, mean
from engine.sim.simulator import Outcome
from engine.sim.traces import Shape
from studio.__main__ import main
from studio.cli.parser import Command, parse_arguments
from studio.cli.simulate_command import Simulation, check_plot, line_of, run_simulation

OUTCOME = Outcome(
    makespan_s=1.0, mean_completion_s=1.0, longest_wait_s=1.0, parks=0, rotations=0,
    tokens_copied=0, tokens_recomputed=0, tokens_generated=1,
)  # fmt: skip
CASE = Case(shape=Shape.UNIFORM, num_chats=4, pool_tokens=8192)


def test_policies_and_orders_are_lists_of_names() -> None:
    given = parse_arguments(
        [
            "simulate",
            "--policies",
            "cost,fcfs,cost",
            "--orders",
            "all",
            "--seeds",
            "2",
            "--plot",
            "x.png",
        ]
    )
    assert given.command is Command.SIMULATE
    assert (given.policies, given.orders, given.num_seeds) == (
        ("cost", "fcfs"),
        ("head", "pass"),
        2,
    )
    assert given.plot == Path("x.png")
    assert len(parse_arguments(["simulate", "--policies", "all"]).policies) == 6


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--policies", "fair", "'fair' is unknown; give all, or some of fcfs, cost"),
        ("--orders", "head,tail", "'tail' is unknown; give all, or some of head, pass"),
        ("--policies", "", "'' is unknown"),
        ("--seeds", "0", "'0' is no whole number from 1 to 10000"),
    ],
)
def test_a_value_that_is_not_allowed_is_wrong_usage(
    flag: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["simulate", flag, value])
    assert exit_code.value.code == 2
    assert words in capsys.readouterr().err


def test_the_table_has_a_line_for_each_policy_and_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "waits.png"
    simulation = Simulation(
        policies=("fcfs", "cost"), orders=("head", "pass"), num_seeds=1, plot=plot
    )
    assert run_simulation(simulation, [CASE]) == 0
    _, head, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["uniform", "4", "8192", policy, order]
        for policy in ("fcfs", "cost")
        for order in ("head", "pass")
    ]
    assert {len(line) for line in lines} == {len(head)}
    image = QImage(str(plot))
    assert image.width() == 1200
    assert len({image.pixel(x, 70) for x in range(image.width())}) > 2


@pytest.mark.parametrize("name", ["no/x.png", "folder.png", "x.txt", "x"])
def test_a_plot_that_cannot_be_written_is_told_before_anything_is_played(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.png").mkdir()
    simulation = Simulation(policies=("fcfs",), orders=("head",), num_seeds=1, plot=tmp_path / name)
    with pytest.raises(OSError, match="cannot be written"):
        run_simulation(simulation, [CASE])
    assert capsys.readouterr().out == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder.png"]


def test_a_plot_that_is_there_is_kept_until_the_new_one_is_drawn(tmp_path: Path) -> None:
    plot = tmp_path / "x.png"
    plot.write_bytes(b"old")
    check_plot(plot)
    assert plot.read_bytes() == b"old"


def test_a_mean_below_one_is_not_shown_as_none() -> None:
    """Of two seeds one parks once: a table with 0 parks and cells copied would contradict itself."""
    outcome = mean([replace(OUTCOME, parks=1), OUTCOME])
    row = Row(case=CASE, policy="fcfs", resume_order="head", outcome=outcome)
    assert outcome.parks == 0.5
    assert line_of(row).split()[8] == "0.5"


def test_the_table_says_which_figures_are_means_and_which_is_the_longest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_simulation(Simulation(policies=("fcfs",), orders=("head",), num_seeds=1), [CASE])
    words = capsys.readouterr().out.splitlines()[0]
    assert words == "means over the seeds (1); the longest wait is the longest of all of them"
