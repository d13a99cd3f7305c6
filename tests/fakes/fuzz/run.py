"""Spreads fuzz cases over worker processes and sums up what they report.

A worker that dies or hangs costs only the case it was at: another goes on behind it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fakes.fuzz.worker import MEMORY_BYTES

LIMIT_S = 2.0
"""Of processor time per case: the same on a busy machine. A case that waits is caught as a hang."""
NUM_WORKERS = 2
_TESTS = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Report:
    """What became of the cases; `failures` are texts that say how to run the case again."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    most_cpu_s: float = 0.0
    most_wall_s: float = 0.0
    most_memory_bytes: int = 0

    def add(self, other: Report) -> None:
        self.cases += other.cases
        self.outcomes += other.outcomes
        self.failures += other.failures
        self.most_cpu_s = max(self.most_cpu_s, other.most_cpu_s)
        self.most_wall_s = max(self.most_wall_s, other.most_wall_s)
        self.most_memory_bytes = max(self.most_memory_bytes, other.most_memory_bytes)

    def summary(self) -> str:
        counts = ", ".join(f"{outcome} {count}" for outcome, count in sorted(self.outcomes.items()))
        return (
            f"{self.cases} cases, {len(self.failures)} failed; at most {self.most_cpu_s:.3f} s of processor, "
            f"{self.most_wall_s:.3f} s, {self.most_memory_bytes / 2**20:.1f} MiB; {counts}"
        )


def run_fuzz(seed: int, cases: int, folder: Path) -> Report:
    """Run cases 0 to `cases` of `seed`; `folder` is scratch space."""
    report = Report()
    with ThreadPoolExecutor(NUM_WORKERS) as pool:
        parts = [
            pool.submit(_run_share, seed, first, cases, folder) for first in range(NUM_WORKERS)
        ]
        for part in parts:
            report.add(part.result())
    return report


def _run_share(seed: int, first: int, cases: int, folder: Path) -> Report:
    """Every NUM_WORKERS-th case from `first` on."""
    report = Report()
    following = first
    while following < cases:
        stopped_at = _run_worker(seed, following, cases, folder / str(first), report)
        following = stopped_at + NUM_WORKERS
    return report


def _run_worker(seed: int, start: int, cases: int, folder: Path, report: Report) -> int:
    """Run cases from `start` on until all are done or the worker ends; returns the last one begun."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [str(number) for number in (seed, start, cases, NUM_WORKERS)]
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "fakes.fuzz.worker",
        *numbers,
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_TESTS.parent), str(_TESTS)))}
    at, finished = start, True
    with (folder / "stderr.txt").open("w+") as errors:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        ) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                message = json.loads(line)
                finished = "outcomes" in message
                if finished:
                    _count(report, seed, message)
                else:
                    at = message["started"]
        errors.seek(0)
        if not finished or worker.returncode:
            fate = f"the worker ended with {worker.returncode}:\n{errors.read()[-3000:]}"
            report.cases += 1
            report.failures.append(_describe(seed, at, fate))
    return at


def _count(report: Report, seed: int, message: dict) -> None:  # type: ignore[type-arg]
    report.cases += 1
    report.outcomes.update(message["outcomes"])
    report.most_cpu_s = max(report.most_cpu_s, message["cpu_s"])
    report.most_wall_s = max(report.most_wall_s, message["wall_s"])
    report.most_memory_bytes = max(report.most_memory_bytes, message["memory_bytes"])
    problem = message["failure"]
    if not problem and message["cpu_s"] > LIMIT_S:
        problem = f"took {message['cpu_s']:.1f} s of processor, the limit is {LIMIT_S} s"
    if not problem and message["memory_bytes"] > MEMORY_BYTES:
        problem = f"took {message['memory_bytes']} bytes, the limit is {MEMORY_BYTES}"
    if problem:
        report.failures.append(_describe(seed, message["case"], problem))


def _describe(seed: int, case: int, problem: str) -> str:
    again = f"PYTHONPATH=.{os.pathsep}tests python -m fakes.fuzz.worker {seed} {case} {case + 1} 1 FOLDER"
    return f"seed {seed}, case {case} (again: {again})\n{problem}"
