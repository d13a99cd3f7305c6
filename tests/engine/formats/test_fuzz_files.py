"""Thousands of mutated models: each one loads or is refused with one of our errors, at little cost.

Loading means opening, inspecting, and reading every tensor, the spec, the tokenizer and the chat
template. The whole run: `pytest -m full tests/engine/formats/test_fuzz_files.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fakes.fuzz.run import Report, run_fuzz

SEED = 1


def check(report: Report, cases: int) -> None:
    assert report.failures == [], "\n\n".join(report.failures[:10]) + f"\n\n{report.summary()}"
    assert report.cases == cases
    # The mutations are neither harmless nor all fatal at the first byte.
    for outcome in ("open ok", "open CorruptModel", "tokenizer ok", "tokenizer CorruptModel"):
        assert report.outcomes[outcome] > cases / 50, report.summary()


def test_a_sample_of_mutated_models_loads_or_is_refused(tmp_path: Path) -> None:
    check(run_fuzz(SEED, 1000, tmp_path), 1000)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_20000_mutated_models_load_or_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = run_fuzz(SEED, 20_000, tmp_path)
    with capsys.disabled():
        sys.stdout.write(f"\n{report.summary()}\n")
    check(report, 20_000)
