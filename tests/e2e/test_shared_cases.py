"""The shared cases of HTTP APIs, each from a fault that users of other servers met, against `layby serve`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakes.serving import serving

KEY = "sk-shared-cases"
WINDOW = ("-m", "smollm2-135m", "-c", "8192", "-np", "4")
SLACK = "4"
"""Times of the cases are meant for a machine that does nothing else."""
QUICK_AREAS = ("http.body", "http.surface", "http.limits", "http.messages", "http.responses")


def failures(cases: Path, address: str, results: Path, *arguments: str) -> list[str]:
    """Run the cases that the arguments choose; a line for each that fails."""
    command = [sys.executable, str(cases / "run_cases.py"), address, "--slack", SLACK]
    done = subprocess.run(
        [*command, "--json", str(results), *arguments], capture_output=True, text=True, check=False
    )
    assert results.exists(), done.stdout + done.stderr
    told = json.loads(results.read_text("utf-8"))
    assert told["counts"]["PASS"] + told["counts"]["FAIL"] > 0, "no case was chosen"
    return [
        f"{case['id']} {case['title']}: {case['why']}"
        for case in told["results"]
        if case["result"] not in ("PASS", "SKIP")
    ]


@contextmanager
def overflowing(cases: Path, address: str) -> Iterator[list[str]]:
    """Meanwhile chats that want twice the pool run, again and again; gives what each round said in the end."""
    load = ("-n", "8", "--prompt-tokens", "600", "--max-tokens", "1400", "--ignore-eos")
    program = (sys.executable, str(cases / "chat_load.py"), "--base-url", address)
    command = [*program, *load, "--summary-only", "--deadline", "3000"]
    rounds: list[str] = []
    stops = threading.Event()

    def play() -> None:
        while not stops.is_set():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            rounds.append(done.stdout + done.stderr if done.returncode else "")

    player = threading.Thread(target=play)
    player.start()
    try:
        yield rounds
    finally:
        stops.set()
        player.join()


@pytest.mark.slow
@pytest.mark.xdist_group("served")
@pytest.mark.parametrize("area", QUICK_AREAS)
def test_the_quick_cases(area: str, served: str, shared_cases: Path, tmp_path: Path) -> None:
    assert failures(shared_cases, served, tmp_path / "results.json", "--area", area) == []


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_all_general_cases(starter_model: Path, shared_cases: Path, tmp_path: Path) -> None:
    assert starter_model.is_file()
    with serving(*WINDOW) as address:
        assert failures(shared_cases, address, tmp_path / "results.json") == []


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_all_general_cases_while_chats_overflow_the_pool(
    starter_model: Path, shared_cases: Path, tmp_path: Path
) -> None:
    assert starter_model.is_file()
    with serving(*WINDOW) as address, overflowing(shared_cases, address) as rounds:
        found = failures(shared_cases, address, tmp_path / "results.json")
    assert found == []
    assert rounds == [""] * len(rounds)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("need", "flags", "arguments"),
    [
        ("pool", ("-c", "1024", "-np", "4"), ("--pool", "1024")),
        ("api_key", ("--api-key", KEY), ("--api-key", KEY)),
    ],
)
def test_the_cases_with_needs(
    need: str,
    flags: tuple[str, ...],
    arguments: tuple[str, ...],
    starter_model: Path,
    shared_cases: Path,
    tmp_path: Path,
) -> None:
    assert starter_model.is_file()
    with serving("-m", "smollm2-135m", *flags) as address:
        chosen = ("--have", need, "--only-needs", *arguments)
        assert failures(shared_cases, address, tmp_path / "results.json", *chosen) == []
