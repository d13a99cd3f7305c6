"""The README's map, its table of dependencies and its commands tell the truth."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_package_is_on_the_map() -> None:
    packages = {
        str(init.parent.relative_to(ROOT)).replace("\\", "/")
        for folder in ("engine", "kernels", "studio", "resources")
        for init in (ROOT / folder).rglob("__init__.py")
    }
    missing = [name for name in sorted(packages) if f"`{name}/`" not in README]
    assert not missing


def test_everything_on_the_map_exists() -> None:
    named = re.findall(r"^\| `([\w./-]+/)`", README, flags=re.MULTILINE)
    assert named
    assert [name for name in named if not (ROOT / name).is_dir()] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[<>=; \[]", requirement)[0] for requirement in requirements}
    assert [name for name in sorted(names) if f"| {name} |" not in README] == []
    assert all(">=" in requirement for requirement in requirements)
