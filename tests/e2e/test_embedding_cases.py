"""The shared cases that need an embedding model, against `layby serve` with one of tokens enough for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gguf

from fakes.serving import serving
from fakes.tiny_files import write_tiny_gguf

UNUSED_TOKENS = 20_000
"""The cases name token ids of a usual vocabulary."""


def test_the_cases_of_embeddings_pass(shared_cases: Path, tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path, pooling=gguf.PoolingType.LAST, unused=UNUSED_TOKENS)
    runner = shared_cases / "run_cases.py"
    with serving("-m", str(model), "-c", "512") as address:
        command = [sys.executable, str(runner), address, "--have", "embeddings", "--only-needs"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "passed 3" in result.stdout
