"""`layby bench` and `layby simulate --calibrated`: arguments, errors, and everything at once on the tiny model."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.tiny_files import write_tiny_gguf
from studio.__main__ import main
from studio.bench.plan import ModelWish, Part
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
    assert (wishes.models, wishes.as_markdown) == ((), False)
    assert parse_arguments(["bench", "--parts", "all"]).bench.parts == tuple(p.value for p in Part)


def test_models_are_named_with_their_parts(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    odd.touch()
    given = parse_arguments(["bench", "--markdown", "tiny", "x.gguf=steps,parks", str(odd)])
    assert given.bench.as_markdown
    assert given.bench.models == (
        ModelWish("tiny"),
        ModelWish("x.gguf", ("steps", "parks")),
        ModelWish(str(odd)),
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parts", "speed"], "'speed' is unknown; give all, or some of machine, steps"),
        (["tiny=speed"], "'speed' is unknown; give all, or some of machine, steps"),
        (["--rounds", "0"], "'0' is no whole number from 1 to 10000"),
        (["--against", "ollama=/bin/true"], "write llama-server=PATH"),
        (["--against", "llama-server="], "write llama-server=PATH"),
        (["--against", "llama-server=/no/such"], "there is no file /no/such"),
        (["--ctx-size", "512"], "unrecognized arguments: --ctx-size"),
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
def test_scenarios_and_a_calibration_on_the_tiny_model(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path)
    report = measured(f"{model} --parts machine,steps,parks,scenarios,perplexity --calibrate")
    assert list(report) == ["machine", "steps", "parks", "scenarios", "perplexity"]
    assert report["machine"]["memory, read"] > 0
    assert report["steps"]["decode, 4 at once"] > 0
    assert report["parks"]["park in place"] > 0
    perplexity = report["perplexity"]
    assert perplexity["served by float32"] < 0.5
    assert perplexity["perplexity, served"] == pytest.approx(
        perplexity["perplexity, float32 on the same weights"], rel=0.005
    )
    scenarios = report["scenarios"]
    for name in ("overflow", "fits", "one after another"):
        assert scenarios[f"{name}: completed"] == 4
    assert scenarios["overflow: texts as alone"] == 4
    for name in ("overflow by the simulator's bound", "overflow by one after another"):
        assert scenarios[name] > 0
    assert find_paths().calibrations_file.is_file()
    simulated = ["simulate", "--calibrated", "-m", str(model), "--cpu-variant", "torch"]
    assert main([*simulated, "--policies", "fcfs", "--seeds", "1"]) == 0


@pytest.mark.full
@pytest.mark.timeout(900)
def test_starting_gaps_and_a_comparison_on_the_tiny_model(tmp_path: Path) -> None:
    """What stands in for llama-server is another Layby."""
    model = write_tiny_gguf(tmp_path)
    other = tmp_path / "llama-server"
    other.write_text(STAND_IN.format(python=sys.executable))
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    report = measured(f"-m {model} --parts start,busy,against,gaps --against llama-server={other}")
    assert report["start"]["resident after loading"] > 0
    assert report["busy"]["layby, beside a program that spins"] > 0
    against = report["against"]
    for name in ("decode of one", "four together: useful", "running chats held up by a new one"):
        assert against[f"llama-server, {name}"] > 0
        assert against[f"layby by llama-server, {name}"] > 0
    assert "gaps" in report


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


def measured(arguments: str) -> dict[str, dict[str, float]]:
    """The medians of a quick run, by part and name."""
    command = [sys.executable, "-m", "studio", "bench", "--quick", "--json", *arguments.split()]
    command += ["--cpu-variant", "torch", "--threads", "1"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return {
        part["part"]: {figure["name"]: figure["median"] for figure in part["figures"]}
        for part in json.loads(process.stdout)["models"][0]["parts"]
    }
