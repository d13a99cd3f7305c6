"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    p for folder in ("engine", "kernels", "studio") for p in sorted((ROOT / folder).rglob("*.py"))
]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50
MAX_KERNEL_LINES = 80
MAX_POSITIONAL = 4


def faults(path: Path) -> list[str]:
    """What is too large in a file, or not described."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = []
    if (lines := len(text.splitlines())) > MAX_FILE_LINES:
        found.append(f"has {lines} lines")
    if text.strip() and not ast.get_docstring(tree):
        found.append("does not say what it holds")
    limit = MAX_KERNEL_LINES if path.is_relative_to(ROOT / "kernels") else MAX_FUNCTION_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            positional = [a for a in node.args.args if a.arg not in ("self", "cls")]
            if length > limit:
                found.append(f"{node.name} has {length} lines")
            if len(positional) > MAX_POSITIONAL:
                found.append(f"{node.name} takes {len(positional)} positional parameters")
    return found


def test_files_and_functions_are_small_and_described() -> None:
    found = {str(path.relative_to(ROOT)): faults(path) for path in FILES}
    assert {name: what for name, what in found.items() if what} == {}


def test_what_is_too_large_or_not_described_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("def f(a, b, c, d, e):\n" + "    a\n" * MAX_FILE_LINES)
    assert faults(path) == [
        f"has {MAX_FILE_LINES + 1} lines",
        "does not say what it holds",
        f"f has {MAX_FILE_LINES + 1} lines",
        "f takes 5 positional parameters",
    ]


def test_the_packages_that_must_stay_light_have_empty_inits() -> None:
    for name in ("engine", "engine/core", "kernels"):
        assert (ROOT / name / "__init__.py").read_text() == ""
