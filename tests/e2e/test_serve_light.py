"""What `layby serve` does without on the native kernels: torch and Qt, whose loading takes seconds and much memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from fakes.serving import ROOT, serving
from fakes.tiny_files import write_tiny_gguf

HEAVY = {"torch", "PySide6", "qasync", "transformers", "numba", "pandas"}


def test_a_reply_from_the_native_kernels_needs_neither_torch_nor_qt(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path)
    command = [sys.executable, "-m", "studio", "serve", "-m", str(model), "--port", "0"]
    command += ["--cpu-variant", "native", "--device", "cpu", "-c", "512"]
    imports = tmp_path / "imports.txt"
    environment = {**os.environ, "LAYBY_HOME": str(tmp_path), "PYTHONPROFILEIMPORTTIME": "1"}
    with (
        imports.open("w") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("listening on "), imports.read_text("utf-8")[-500:]
            answer = httpx.post(
                f"{line.split()[-1]}/v1/completions",
                json={"prompt": "the quick", "max_tokens": 3},
                timeout=60,
            )
        finally:
            process.terminate()
    assert answer.status_code == 200, answer.text
    loaded = {line.rpartition("|")[2].strip() for line in imports.read_text("utf-8").splitlines()}
    assert {"engine.runtime.loaded_model", "kernels.native_backend", "fastapi"} <= loaded
    assert not HEAVY & {name.partition(".")[0] for name in loaded}


@pytest.mark.slow
def test_memory_after_loading_is_the_weights_a_quarter_more_and_250_mb(starter_model: Path) -> None:
    others = set(psutil.Process().children())
    with serving("-m", "smollm2-135m", "--cpu-variant", "native", "--device", "cpu") as address:
        answer = httpx.get(f"{address}/health", timeout=60)
        assert answer.status_code == 200
        (server,) = (one for one in psutil.Process().children() if one not in others)
        resident = server.memory_info().rss
    assert resident <= 1.25 * starter_model.stat().st_size + 250e6
