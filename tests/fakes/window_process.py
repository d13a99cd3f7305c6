"""The real window in a process of its own, so that it can be killed; a driver says on stdout what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fakes.serving import ROOT


@contextmanager
def window_of(driver: str, home: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run `fakes.<driver>` with `home` as LAYBY_HOME; killed at the end."""
    environment = {**os.environ, "LAYBY_HOME": str(home), "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", f"fakes.{driver}", *map(str, arguments)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
