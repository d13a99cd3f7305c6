"""Takes the pictures of every scenario as it looks elsewhere: in both languages, in light and dark, on four screens.

Run: PYTHONPATH=.:tests python -m fakes.gallery FOLDER [VARIANT…]; a variant is LANGUAGE-WIDTHxHEIGHT-SCALE, and all of
them are taken where none is named. Tests run without a screen, on one that Qt is told of. Not collected by pytest.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "de")
SCREENS = ((1280, 800), (3840, 2160))
SCALES = (1, 2)
VARIANTS = tuple(
    f"{language}-{width}x{height}-{scale}"
    for language, (width, height), scale in itertools.product(LANGUAGES, SCREENS, SCALES)
)


def scenarios() -> list[str]:
    """The tests that leave pictures."""
    found = []
    for path in sorted((ROOT / "tests" / "studio").rglob("test_*.py")):
        functions = {
            node.name: node
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        leave = {"shoot"}
        for _ in functions:  # what calls one of these does, too
            leave |= {name for name, node in functions.items() if leave & _called(node)}
        tests = (name for name in functions if name in leave and name.startswith("test_"))
        found += [f"{path.relative_to(ROOT)}::{name}" for name in tests]
    return found


def _called(function: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {
        call.id if isinstance(call, ast.Name) else call.attr
        for call in calls
        if isinstance(call, ast.Name | ast.Attribute)
    }


def take(folder: Path, variant: str) -> int:
    """Run the scenarios in one variant, the pictures going into a folder of its name; pytest's exit code."""
    language, size, scale = variant.split("-")
    width, height = (int(side) for side in size.split("x"))
    screen = {"name": "s", "x": 0, "y": 0, "width": width, "height": height}
    dpi = {"logicalDpi": 96, "logicalBaseDpi": 96}
    with tempfile.TemporaryDirectory() as temporary:
        config = Path(temporary) / "screens.json"
        config.write_text(json.dumps({"screens": [screen | dpi]}), encoding="utf-8")
        variables = {
            "QT_QPA_PLATFORM": f"offscreen:configfile={config}",
            "QT_SCALE_FACTOR": scale,  # a screen's own "dpr" does not reach what is drawn on it
            "TEST_SCREENSHOTS": str(folder / variant),
            "TEST_LANGUAGE": language,
            "TEST_THEMES": "light,dark",
            "TEST_WINDOW": f"{width // int(scale)}x{height // int(scale)}",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
        return subprocess.run(
            [*command, *scenarios()], cwd=ROOT, env=os.environ | variables, check=False
        ).returncode


def main() -> int:
    folder, *variants = sys.argv[1:]
    return max(take(Path(folder), variant) for variant in variants or VARIANTS)


if __name__ == "__main__":
    sys.exit(main())
