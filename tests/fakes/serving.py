"""Real programs: `layby serve` in a process of its own, on the starter model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from openai import OpenAI

ROOT = Path(__file__).resolve().parents[2]
TEST_HOME = ROOT / ".cache" / "home"

_LOUD = re.compile(r"^\S+ \S+ (WARNING|ERROR|CRITICAL) |^Traceback", re.MULTILINE)


@contextmanager
def serving(*arguments: str, home: Path = TEST_HOME) -> Iterator[str]:
    """Run `layby serve` with these arguments on a free port; gives the address it prints.

    `home` has the library: by default the one with the starter model, which requests may name.
    Ends it politely, and fails if it did not end well, printed more or logged a warning.
    """
    command = [sys.executable, "-m", "studio", "serve", "--port", "0", *arguments]
    environment = {**os.environ, "LAYBY_HOME": str(home)}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,  # a pipe that nobody reads fills up
        subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=log
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("listening on http://"):
                process.kill()
                pytest.fail(f"serve said {line!r} and {_text_of(log)}")
            yield line.removeprefix("listening on ").strip()
        finally:
            process.terminate()
            rest, _ = process.communicate(timeout=60)
        logged = _text_of(log)
    assert rest == "", "serve prints one line and no more"
    assert process.returncode == 0, logged
    assert not _LOUD.search(logged), logged


def _text_of(log: IO[str]) -> str:
    log.seek(0)
    return log.read()


def client_of(address: str) -> OpenAI:
    return OpenAI(base_url=f"{address}/v1", api_key="none", timeout=300, max_retries=0)
