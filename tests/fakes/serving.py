"""Real programs: `layby serve` in a process of its own, on the starter model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai import OpenAI

ROOT = Path(__file__).resolve().parents[2]
TEST_HOME = ROOT / ".cache" / "home"


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run `layby serve` with these arguments on a free port; gives the address it prints. Ends it politely."""
    command = [sys.executable, "-m", "studio", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "LAYBY_HOME": str(TEST_HOME)}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("listening on http://"):
                process.kill()
                pytest.fail(f"serve said {line!r} and {process.communicate()[1]}")
            yield line.removeprefix("listening on ").strip()
        finally:
            process.terminate()
            rest, errors = process.communicate(timeout=60)
        assert rest == "", "serve prints one line and no more"
        assert process.returncode == 0, errors


def client_of(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key="none", timeout=300, max_retries=0)
