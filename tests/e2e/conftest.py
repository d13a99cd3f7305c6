"""The starter model, served once for all end-to-end tests of a worker; and the matrix of parking as a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.serving import TEST_HOME, serving


@pytest.fixture(scope="session")
def served(starter_model: Path) -> Iterator[str]:
    """The starter model, served as issue and README show it; one for all tests of a worker."""
    assert starter_model.is_relative_to(TEST_HOME)
    with serving("-m", "smollm2-135m", "-c", "4096", "-np", "4") as address:
        yield address


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each variant of the matrix that was run, whatever became of it."""
    rows = [
        row
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, row in report.user_properties
        if name == "matrix" and report.when == "call"
    ]
    if not rows:
        return
    terminalreporter.section("parking")
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        terminalreporter.line("  ".join(padded).rstrip())
