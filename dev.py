#!/usr/bin/env python3
"""Set up everything and go: `python dev.py run [ARGS]` opens Layby, `python dev.py test [ARGS]` runs the tests.

Needs only Python 3.11 to 3.13 with venv and pip, and a C++ compiler for full speed. Installs into .venv when
pyproject.toml, constraints.txt, the kernels' sources or the Python version change, and takes the starter model once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "installed.sha256"
TEST_HOME = ROOT / ".cache" / "home"
STARTER_MODEL = "smollm2-135m"
NODE_PACKAGES = ROOT / ".cache" / "node"
NODE_CLIENT = "openai@6"
ALL_TESTS = [
    *("-n", "auto", "--dist", "loadgroup", "--max-worker-restart", "0"),
    *("-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true"),
]
"""On all cores. pytest-timeout's alarm is heard only where Python code runs, which an idle loop of Qt does not."""


def set_up() -> None:
    """Make .venv, or make it anew when what it was made from has changed; build the kernels again when they have."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"Layby needs Python 3.11 to 3.13, this is {sys.version.split()[0]}")
    kernels = ROOT / "kernels" / "cpu"
    sources = [ROOT / "setup.py", *sorted(kernels.rglob("*.cpp")), *sorted(kernels.rglob("*.h"))]
    needed = digest(ROOT / "pyproject.toml", ROOT / "constraints.txt") + "\n"
    wanted = needed + digest(*sources)
    made = STAMP.read_text() if STAMP.exists() else ""
    if made == wanted:
        return
    if not made.startswith(needed):
        venv.create(VENV, with_pip=True, clear=VENV.exists())
        constraints = str(ROOT / "constraints.txt")
        call(["-m", "pip", "install", "-c", constraints, "-e", f"{ROOT}[dev,clients]"])
    else:
        call(["-m", "pip", "install", "--no-deps", "-e", str(ROOT)])
    STAMP.write_text(wanted)


def digest(*files: Path) -> str:
    """A number for the contents of these files and the Python version."""
    made_from = b"".join(file.read_bytes() for file in files) + sys.version.encode()
    return hashlib.sha256(made_from).hexdigest()


def call(arguments: list[str], environment: dict[str, str] | None = None) -> None:
    """Run .venv's Python; leave with its exit status when it fails."""
    status = subprocess.run([str(PYTHON), *arguments], cwd=ROOT, env=environment).returncode
    if status:
        sys.exit(status)


def run(arguments: list[str]) -> None:
    """Open Layby with the starter model in the library; with arguments, run that command of `layby` instead."""
    call(["-m", "studio", "models", "get", STARTER_MODEL])
    call(["-m", "studio", *(arguments or ["--model", STARTER_MODEL])])


def test(arguments: list[str]) -> None:
    """Run the tests, on all cores unless the arguments say otherwise."""
    environment = {**os.environ, "LAYBY_HOME": str(TEST_HOME)}
    environment.setdefault("QT_QPA_PLATFORM", "offscreen")
    call(["-m", "studio", "models", "get", STARTER_MODEL], environment)
    take_node_client()
    call(["-m", "pytest", *(arguments or ALL_TESTS)], environment)


def take_node_client() -> None:
    """Put the openai package for Node below .cache, once, where npm is there; without it its tests are skipped."""
    npm = shutil.which("npm")
    if npm is None or (NODE_PACKAGES / "node_modules" / "openai").exists():
        return
    NODE_PACKAGES.mkdir(parents=True, exist_ok=True)
    (NODE_PACKAGES / "package.json").write_text('{"private": true}')
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", NODE_CLIENT]
    subprocess.run(command, cwd=NODE_PACKAGES, check=False)


def main() -> None:
    commands = {"run": run, "test": test}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    set_up()
    commands[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
