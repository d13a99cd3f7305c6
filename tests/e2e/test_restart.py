"""The real program starts again in its own process, in another language, with its flags and drafts, its windows, the
model and the server that ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.serving import ROOT
from fakes.tiny_files import write_tiny_gguf

pytestmark = pytest.mark.slow


def test_the_program_starts_again_as_it_was_in_the_other_language(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LAYBY_HOME": str(tmp_path),
        "DISPLAY": os.environ.get("DISPLAY", ":0"),
        "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }
    environment.pop("LAYBY_LANGUAGE", None)
    model = write_tiny_gguf(tmp_path / "model")
    environment |= {"TEST_MODEL": str(model), "LAYBY_PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "fakes.restart_driver", "--ctx-size", "512"],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    kept = {"draft": "Not sent yet", "pool_panel": True, "ctx_size": 512, "chats": 2}
    kept |= {"own_windows": 1, "model": str(model)}
    assert first | kept == first
    assert second | kept == second
    assert (first["quit"], second["quit"]) == ("&Quit", "&Beenden")
    if sys.platform != "win32":
        assert first["process"] == second["process"]
