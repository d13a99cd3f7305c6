"""What was measured, as a table for people and as JSON for programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from engine.bench.figures import Figure
from studio.bench.plan import Part

FORMAT = "layby-bench-1"
_NAME_WIDTH = 50
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
            f"device {self.device}, kernels {self.cpu_variant}, {threads}\n"
            f"{self.processor}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB, {self.system}; "
            f"load {self.load_before:.2f} before\n"
        )


def section_text(section: Section) -> str:
    """The section as lines of a table, with an empty one before it."""
    return f"\n{section.title}\n{_HEAD}" + "".join(_line(one) for one in section.figures)


def report_json(surroundings: Surroundings, sections: Iterable[Section]) -> str:
    """Everything, every sample included."""
    data = {
        "format": FORMAT,
        "surroundings": {
            name: getattr(surroundings, name) for name in Surroundings.__dataclass_fields__
        },
        "parts": [
            {
                "part": section.part.value,
                "title": section.title,
                "figures": [_figure(figure) for figure in section.figures],
            }
            for section in sections
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def _line(figure: Figure) -> str:
    name = f"{figure.name}, {figure.unit}" if figure.unit else figure.name
    numbers = " ".join(f"{_number(x):>10}" for x in (figure.median, figure.low, figure.high))
    return f"{name:<{_NAME_WIDTH}} {numbers}{_verdict(figure)}\n"


def _verdict(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    sign = "at least" if figure.goal.is_least else "at most"
    return f"   {'reached' if figure.is_met else 'missed'}: {sign} {figure.goal.bound:g}"


def _number(value: float) -> str:
    """Four digits that count, without an exponent where people can do without one."""
    if value == int(value):
        return f"{value:,.0f}"
    places = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 4
    return f"{value:,.{places}f}"


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
    }
