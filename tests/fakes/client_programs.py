"""Clients in processes of their own: Node's openai package, and packages that take seconds to import.

Each program in `tests/e2e/clients/programs` takes the server's address and what to do, and prints one JSON value.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes.serving import ROOT

PROGRAMS = ROOT / "tests" / "e2e" / "clients" / "programs"
NODE_PACKAGES = ROOT / ".cache" / "node"
"""Where `dev.py test` puts the openai package for Node, where npm is there."""
TIMEOUT_S = 240
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}
"""Nobody asks the network for prices or reports there."""


def ask_program(name: str, address: str, what: str) -> Any:
    """What the program prints; fails with its errors where it fails."""
    done = subprocess.run(
        [*_interpreter(name), str(PROGRAMS / name), address, what],
        env={**os.environ, **_QUIET, "PYTHONPATH": str(ROOT / "tests"), "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def skip_without(name: str) -> None:
    """Skip, and say why, where what the program needs is not installed."""
    if reason := _lack(name):
        pytest.skip(reason)


def is_there(name: str) -> bool:
    return not _lack(name)


@functools.cache
def _lack(name: str) -> str:
    """Why the program cannot run here; empty where it can."""
    if name.endswith(".cjs"):
        if shutil.which("node") is None:
            return "Node is not installed"
        has_package = (NODE_PACKAGES / "node_modules" / "openai").is_dir()
        return "" if has_package else f"the openai package for Node is not in {NODE_PACKAGES}"
    package = Path(name).stem.removesuffix("_client")
    return "" if importlib.util.find_spec(package) else f"{package} is not installed"


def _interpreter(name: str) -> list[str]:
    return ["node"] if name.endswith(".cjs") else [sys.executable]
