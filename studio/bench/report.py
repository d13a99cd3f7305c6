"""What was measured: a table of each model, JSON for programs, and Markdown with all models side by side. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from engine.bench.figures import Figure
from studio.bench.plan import Part

FORMAT = "layby-bench-2"
_NAME_WIDTH = 64
_HEAD = f"{'':<{_NAME_WIDTH}} {'median':>10} {'from':>10} {'to':>10}\n"


@dataclass(frozen=True, slots=True)
class Section:
    """Figures of one part."""

    part: Part
    title: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where and of what the figures are."""

    version: str
    system: str
    processor: str
    cores: int
    memory_bytes: int
    load_before: float
    """Programs that wanted a core in the minute before: what others did to the figures."""
    model: str
    model_bytes: int
    device: str
    cpu_variant: str
    threads: int
    """0: one for each core."""

    def lines(self) -> str:
        threads = f"{self.threads} threads" if self.threads else "a thread for each core"
        return (
            f"layby {self.version}: {self.model}, {self.model_bytes / 1e6:.1f} MB, "
            f"device {self.device}, kernels {self.cpu_variant}, {threads}\n{self.machine()}\n"
        )

    def machine(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB, {self.system}; "
            f"load {self.load_before:.2f} before"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured of one model."""

    surroundings: Surroundings
    sections: tuple[Section, ...]


def pair_of(ours: Sequence[float], theirs: Sequence[float], unit: str) -> str:
    """The medians of what was compared, as a figure's note."""
    return f"{_number(statistics.median(ours))} : {_number(statistics.median(theirs))} {unit}"


def section_text(section: Section) -> str:
    """The section as lines of a table, with an empty one before it."""
    return f"\n{section.title}\n{_HEAD}" + "".join(_line(one) for one in section.figures)


def report_json(reports: Iterable[Report]) -> str:
    """Everything, every sample included."""
    models = [
        {
            "surroundings": asdict(report.surroundings),
            "parts": [
                {
                    "part": section.part.value,
                    "title": section.title,
                    "figures": [_figure(figure) for figure in section.figures],
                }
                for section in report.sections
            ],
        }
        for report in reports
    ]
    return json.dumps({"format": FORMAT, "models": models}, indent=1) + "\n"


def report_markdown(reports: Sequence[Report]) -> str:
    """A table of the figures that have a goal or a note: a row for each, a column for each model."""
    columns = [
        {
            (section.part, figure.name): figure
            for section in report.sections
            for figure in section.figures
            if figure.goal is not None or figure.note
        }
        for report in reports
    ]
    rows = dict.fromkeys(key for column in columns for key in column)
    names = [report.surroundings.model for report in reports]
    lines = [
        _row(["", *names]),
        _row(["---", *("---:" for _ in names)]),
        *(
            _row([_label(columns, key), *(_cell(column.get(key)) for column in columns)])
            for key in sorted(rows, key=lambda key: list(Part).index(key[0]))
        ),
    ]
    machine = reports[0].surroundings.machine() + "\n\n" if reports else ""
    return machine + "\n".join(lines) + "\n"


def _line(figure: Figure) -> str:
    name = f"{figure.name}, {figure.unit}" if figure.unit else figure.name
    numbers = " ".join(f"{_number(x):>10}" for x in (figure.median, figure.low, figure.high))
    note = f"   ({figure.note})" if figure.note else ""
    return f"{name:<{_NAME_WIDTH}} {numbers}{_verdict(figure)}{note}\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _label(columns: Iterable[dict[tuple[Part, str], Figure]], key: tuple[Part, str]) -> str:
    unit = next(column[key].unit for column in columns if key in column)
    return f"{key[1]}, {unit}" if unit else key[1]


def _cell(figure: Figure | None) -> str:
    """The median, how it stands to its goal (bold where it misses it), and the note."""
    if figure is None:
        return ""
    text = _number(figure.median)
    if figure.goal is not None:
        signs = ("≥", "<") if figure.goal.is_least else ("≤", ">")
        text += f" {signs[not figure.is_met]} {_number(figure.goal.bound)}"
    if figure.is_met is False:
        text = f"**{text}**"
    return f"{text} ({figure.note})" if figure.note else text


def _verdict(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    sign = "at least" if figure.goal.is_least else "at most"
    return f"   {'reached' if figure.is_met else 'missed'}: {sign} {figure.goal.bound:g}"


def _number(value: float) -> str:
    """Three or four digits that count, without an exponent where people can do without one."""
    places = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def _figure(figure: Figure) -> dict[str, object]:
    goal = figure.goal
    return {
        "name": figure.name,
        "unit": figure.unit,
        "median": figure.median,
        "low": figure.low,
        "high": figure.high,
        "samples": list(figure.samples),
        "goal": None if goal is None else {"bound": goal.bound, "is_least": goal.is_least},
        "is_met": figure.is_met,
        "note": figure.note,
    }
