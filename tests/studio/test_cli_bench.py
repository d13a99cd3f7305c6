"""`layby bench` and `layby simulate --calibrated`: arguments, errors, and everything at once on the tiny model."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.tiny_files import write_tiny_gguf
from studio.__main__ import main
from studio.bench.plan import Part
from studio.cli.parser import Command, parse_arguments
from studio.paths import find_paths

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_asked_for(tmp_path: Path) -> None:
    other = tmp_path / "llama-server"
    other.touch()
    given = parse_arguments(
        f"bench -m tiny --threads 1 --parts gaps,steps --rounds 5 --json --quick --calibrate "
        f"--against llama-server={other}".split()
    )
    assert given.command is Command.BENCH
    assert given.flags == {"engine.model": "tiny", "engine.threads": 1}
    wishes = given.bench
    assert (wishes.parts, wishes.rounds) == (("gaps", "steps"), 5)
    assert (wishes.as_json, wishes.is_quick, wishes.is_calibrating) == (True, True, True)
    assert wishes.llama_server == other
    assert parse_arguments(["bench", "--parts", "all"]).bench.parts == tuple(p.value for p in Part)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parts", "speed"], "'speed' is unknown; give all, or some of machine, steps"),
        (["--rounds", "0"], "'0' is no whole number from 1 to 10000"),
        (["--against", "ollama=/bin/true"], "write llama-server=PATH"),
        (["--against", "llama-server="], "write llama-server=PATH"),
        (["--against", "llama-server=/no/such"], "there is no file /no/such"),
        (["-c", "512"], "unrecognized arguments: -c 512"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_code:
        main(["bench", *arguments])
    assert exit_code.value.code == 2
    assert words in capsys.readouterr().err


def test_without_a_model_it_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    assert "no model named; name one with -m or LAYBY_MODEL" in capsys.readouterr().err
    assert main(["simulate", "--calibrated"]) == 2
    assert "no model named" in capsys.readouterr().err


def test_a_file_that_is_no_model_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF nothing")
    assert main(["bench", "-m", str(broken)]) == 1
    assert "broken.gguf" in capsys.readouterr().err


def test_a_model_that_was_not_measured_is_told_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny_gguf(tmp_path)
    assert main(["simulate", "--calibrated", "-m", str(model)]) == 1
    told = capsys.readouterr().err
    assert "was not measured on this machine" in told
    assert f"layby bench --calibrate -m {model}" in told


@pytest.mark.slow
def test_all_of_it_on_the_tiny_model(tmp_path: Path) -> None:
    """Servers, a stand-in for llama-server that is another Layby, a calibration, and the simulator on it."""
    model = write_tiny_gguf(tmp_path)
    other = tmp_path / "llama-server"
    other.write_text(STAND_IN.format(python=sys.executable))
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    report = json.loads(
        run(
            f"bench -m {model} --quick --calibrate --json --cpu-variant torch --threads 1 "
            f"--parts machine,steps,parks,scenarios,gaps --against llama-server={other}".split()
        )
    )
    parts = [part["part"] for part in report["parts"]]
    assert parts == ["machine", "steps", "parks", "scenarios", "gaps"]
    figures = {f["name"]: f for part in report["parts"] for f in part["figures"]}
    for name in ("layby, overflow", "layby, fits", "llama-server, fits"):
        assert figures[f"{name}: completed"]["median"] == 4
    assert figures["layby, overflow: parks"]["median"] > 0
    for name in ("overflow by the simulator's bound", "layby by llama-server, decode of one"):
        assert figures[name]["median"] > 0
    assert find_paths().calibrations_file.is_file()
    simulated = ["simulate", "--calibrated", "-m", str(model), "--cpu-variant", "torch"]
    assert main([*simulated, "--policies", "fcfs", "--seeds", "1"]) == 0


STAND_IN = """#!{python}
import os, sys
given = sys.argv[1:]
given.remove("--kv-unified")
if "-tb" in given:
    at = given.index("-tb")
    del given[at : at + 2]
    given[given.index("-t")] = "--threads"
os.execv(sys.executable, [sys.executable, "-m", "studio", "serve", *given])
"""


def run(arguments: list[str]) -> str:
    process = subprocess.run(
        [sys.executable, "-m", "studio", *arguments],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout
