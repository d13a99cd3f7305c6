"""The Arm variants, compiled by a cross compiler and run under an emulator: see native_check.cpp for what is checked.

Skipped where either is missing (Debian: g++-aarch64-linux-gnu, qemu-user).
"""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "kernels" / "cpu"
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Werror", f"-I{SOURCES}"]
VARIANTS = {
    "portable": ["-DLAYBY_SIMD_PORTABLE"],
    "i8mm": ["-DLAYBY_SIMD_NEON", "-DLAYBY_I8MM", "-march=armv8.2-a+dotprod+i8mm"],
    "dotprod": ["-DLAYBY_SIMD_NEON", "-march=armv8.2-a+dotprod"],
}

needs_tools = pytest.mark.skipif(
    shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None,
    reason=f"{COMPILER} and {EMULATOR} are needed",
)


def build(folder: Path) -> Path:
    """Compile common code, every Arm variant and the check into one program."""
    jobs = {}
    for source in [*SOURCES.glob("*.cpp"), HERE / "native_check.cpp"]:
        if not source.name.startswith("variant_"):
            jobs[folder / f"{source.stem}.o"] = [source, *(f"-DLAYBY_HAS_{v}" for v in VARIANTS)]
            continue
        for variant, flags in VARIANTS.items():
            jobs[folder / f"{variant}_{source.stem}.o"] = [
                source,
                f"-DLAYBY_VARIANT={variant}",
                *flags,
            ]
    with ThreadPoolExecutor(2) as pool:
        commands = [[COMPILER, *FLAGS, *args, "-c", "-o", out] for out, args in jobs.items()]
        list(pool.map(lambda command: subprocess.run(command, check=True), commands))
    program = folder / "check"
    subprocess.run([COMPILER, "-static", "-pthread", *jobs, "-o", program], check=True)
    return program


@needs_tools
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("extent", "variants"),
    [
        ("quick", ["i8mm", "dotprod"]),
        *(pytest.param("full", [variant], marks=pytest.mark.full) for variant in VARIANTS),
    ],
)
def test_arm_variants_agree_with_the_portable_one_and_are_exact(
    tmp_path: Path, extent: str, variants: list[str]
) -> None:
    done = subprocess.run(
        [EMULATOR, "-cpu", "max", build(tmp_path), extent, *variants],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert [line.removeprefix("checked ") for line in done.stdout.splitlines()] == variants
