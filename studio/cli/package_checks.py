"""The doctor's look at Python and the packages Layby stands on, and whether Qt's own libraries load."""

from __future__ import annotations

import ctypes
import importlib
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from studio.cli.checks import Check, fail, ok, warn

NEEDED = (
    "PySide6-Essentials", "qasync", "torch", "numpy", "safetensors", "gguf", "tokenizers", "jinja2", "fastapi",
    "starlette", "pydantic", "uvicorn", "httpx", "platformdirs", "psutil", "prometheus-client", "pygments", "ziamath",
    "huggingface-hub", "pypdfium2", "python-docx", "llguidance", "mcp", "httpx2",
)  # fmt: skip
"""Distributions of pyproject.toml that every platform needs (a test compares)."""
OPTIONAL = ("triton", "triton-windows")
"""Needed for NVIDIA kernels only; which one depends on the platform."""

_OLDEST, _NEWEST = (3, 11), (3, 13)
_DEBIAN_REMEDY = "on Debian or Ubuntu the README's apt line brings it"


def check_packages() -> Iterator[Check]:
    """Python first, then packages, then Qt."""
    yield _check_python()
    yield from _check_versions()
    yield _check_triton()
    yield _check_qt()


def _check_python() -> Check:
    text = f"{platform.python_version()} at {sys.executable}"
    if not _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return fail("python", f"{text}; Layby needs 3.11 to 3.13, install one of them")
    return ok("python", text)


def _check_versions() -> Iterator[Check]:
    found = {name: version for name in NEEDED if (version := _version(name)) is not None}
    yield ok("packages", ", ".join(f"{name} {version}" for name, version in found.items()))
    missing = [name for name in NEEDED if name not in found]
    if missing:
        yield fail("packages", f"not installed: {', '.join(missing)}; install Layby again")
    qt = found.get("PySide6-Essentials", "0")
    if sys.version_info < (3, 12) and tuple(map(int, qt.split(".")[:2])) >= (6, 12):
        yield fail(
            "packages",
            f"PySide6 {qt} ends programs on Python {platform.python_version()}; "
            "install PySide6-Essentials below 6.12, or Python 3.12",
        )


def _check_triton() -> Check:
    for name in OPTIONAL:
        if (version := _version(name)) is not None:
            return ok("triton", f"{name} {version}")
    return ok("triton", "not installed; only the kernels for NVIDIA devices need it")


def _check_qt() -> Check:
    """Loads what the window loads: the libraries a fresh Linux lacks are named by the loader."""
    try:
        core = importlib.import_module("PySide6.QtCore")
        importlib.import_module("PySide6.QtWidgets")
        if sys.platform == "linux":
            plugins = Path(core.QLibraryInfo.path(core.QLibraryInfo.LibraryPath.PluginsPath))
            ctypes.CDLL(str(plugins / "platforms" / "libqxcb.so"))
    except (ImportError, OSError) as error:
        remedy = _DEBIAN_REMEDY if sys.platform == "linux" else "install Layby again"
        return warn("qt", f"the window cannot open: {error}; {remedy}. The server works without it")
    return ok("qt", f"{core.qVersion()}, its libraries load")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
