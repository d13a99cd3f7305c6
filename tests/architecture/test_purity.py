"""What import contracts cannot see: that importing the pure half loads no tensor library at run time."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
