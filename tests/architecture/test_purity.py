"""What import contracts cannot see: what importing the pure half loads, and that no loop runs within the window's."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NESTING = {"exec", "exec_", "processEvents"}
BEFORE_THE_LOOP = {"studio/views/dialogs/refusal.py"}
HEAVY = ("torch", "triton", "numpy", "tokenizers", "PySide6", "fastapi", "transformers")


def loaded_by(module: str) -> list[str]:
    code = f"import sys, {module}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


@pytest.mark.parametrize("module", ["engine.core.scheduler", "engine.api", "engine.client"])
def test_the_pure_half_loads_nothing_heavy(module: str) -> None:
    assert loaded_by(module) == []


@pytest.mark.parametrize("module", ["studio.__main__", "studio.services.chat_service"])
def test_the_command_line_and_the_services_load_neither_torch_nor_qt(module: str) -> None:
    assert not {"torch", "PySide6", "fastapi", "transformers"} & set(loaded_by(module))


def test_making_the_factory_available_loads_no_torch() -> None:
    assert "torch" not in loaded_by("engine.factory")


def test_no_loop_runs_within_the_windows_loop() -> None:
    """A task that is due in a loop within another task cannot run, and nothing ever wakes it again."""
    nesting = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "studio").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in NESTING
    }
    assert nesting == BEFORE_THE_LOOP
