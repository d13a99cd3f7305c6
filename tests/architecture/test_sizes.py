"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    p for folder in ("engine", "kernels", "studio") for p in sorted((ROOT / folder).rglob("*.py"))
]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_KERNEL_LINES = 80
MAX_POSITIONAL = 4


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_and_its_functions_are_small_and_described(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "a module says what it holds"
    limit = MAX_KERNEL_LINES if path.is_relative_to(ROOT / "kernels") else MAX_FUNCTION_LINES
    for function in functions(path):
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= limit, f"{function.name} has {length} lines"
        positional = [a for a in function.args.args if a.arg not in ("self", "cls")]
        assert len(positional) <= MAX_POSITIONAL, (
            f"{function.name} takes {len(positional)} positional parameters"
        )


def test_the_packages_that_must_stay_light_have_empty_inits() -> None:
    for name in ("engine", "engine/core", "kernels"):
        assert (ROOT / name / "__init__.py").read_text() == ""
