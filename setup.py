"""Builds the native kernels (kernels/cpu) beside the package; everything else is in pyproject.toml.

One library without Python's own headers, so that one build serves every Python: common code compiled for any CPU,
and the kernels once for each instruction set. A machine without a C++ compiler gets a package without the library,
which runs on torch and says so.

"""

from __future__ import annotations

import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

FOLDER = Path("kernels/cpu")
SOURCES = sorted(str(path) for path in FOLDER.glob("*.cpp"))
HEADERS = sorted(str(path) for path in FOLDER.rglob("*.h"))
VARIANT_SOURCES = [source for source in SOURCES if Path(source).name.startswith("variant_")]
CHOICE = str(FOLDER / "variants.cpp")  # needs to know which variants there are
COMMON_SOURCES = [s for s in SOURCES if s not in VARIANT_SOURCES and s != CHOICE]
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

# No contraction: a product and a sum that a compiler fuses in one place and not in another are not the same bits.
EXACT_FLAGS = ["-ffp-contract=off", "-fno-fast-math", "-fno-math-errno"]
GNU_FLAGS = ["-std=c++17", "-O3", "-g0", *EXACT_FLAGS, "-fvisibility=hidden", "-fPIC", "-pthread"]
# What is called precise there contracted until Visual C++ 2022.
MSVC_FLAGS = ["/std:c++17", "/O2", "/fp:strict", "/EHsc"]


@dataclass(frozen=True)
class Variant:
    """An instruction set: its vector layer (simd/simd.h) and the compilers' flags for it."""

    name: str
    macros: tuple[str, ...]
    gnu: tuple[str, ...]
    msvc: tuple[str, ...] = ()


AVX2_FLAGS = ("-mavx2", "-mfma", "-mf16c")
AVX512_FLAGS = tuple(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vnni"))
# GCC 12 takes its own intrinsics for uninitialised (bug 105593).
QUIET_FLAGS = ("-Wno-uninitialized", "-Wno-maybe-uninitialized")
PORTABLE = Variant("portable", ("LAYBY_SIMD_PORTABLE",), ())
VARIANTS = {
    "x86_64": (
        Variant(
            "avx512bf16",
            ("LAYBY_SIMD_AVX512", "LAYBY_BF16"),
            (*AVX2_FLAGS, *AVX512_FLAGS, "-mavx512bf16", *QUIET_FLAGS),
            ("/arch:AVX512",),
        ),
        Variant(
            "avx512vnni",
            ("LAYBY_SIMD_AVX512",),
            (*AVX2_FLAGS, *AVX512_FLAGS, *QUIET_FLAGS),
            ("/arch:AVX512",),
        ),
        Variant(
            "avx2vnni",
            ("LAYBY_SIMD_AVX2", "LAYBY_AVXVNNI"),
            (*AVX2_FLAGS, "-mavxvnni"),
            ("/arch:AVX2",),
        ),
        Variant("avx2", ("LAYBY_SIMD_AVX2",), AVX2_FLAGS, ("/arch:AVX2",)),
        PORTABLE,
    ),
    "aarch64": (
        Variant("i8mm", ("LAYBY_SIMD_NEON", "LAYBY_I8MM"), ("-march=armv8.2-a+dotprod+i8mm",)),
        Variant("dotprod", ("LAYBY_SIMD_NEON",), ("-march=armv8.2-a+dotprod",)),
        PORTABLE,
    ),
}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}


class BuildKernels(build_ext):
    """Compiles every variant that the compiler knows and links them into one library."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split("."))) + SUFFIX

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []  # the functions say themselves that they are exported

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        newest = max(Path(file).stat().st_mtime for file in [*SOURCES, *HEADERS, __file__])
        if not self.force and target.exists() and target.stat().st_mtime > newest:
            return
        machine = MACHINES.get(platform.machine().lower(), "")
        variants = VARIANTS.get(machine, (PORTABLE,))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            common = pool.map(lambda source: self._compile(source, "common"), COMMON_SOURCES)
            made = [(v, pool.submit(self._compile_variant, v)) for v in variants]
            objects = [name for part in common for name in part]
        built = {variant.name: future.result() for variant, future in made}
        found = [name for name, names in built.items() if names]
        macros = [(f"LAYBY_HAS_{name}", "1") for name in found]
        objects += self._compile(CHOICE, "common", macros)
        for name in found:
            objects += built[name]
        target.parent.mkdir(parents=True, exist_ok=True)
        options = [] if self._is_msvc else ["-pthread"]
        self.compiler.link_shared_object(
            objects, str(target), extra_postargs=options, target_lang="c++"
        )

    @property
    def _is_msvc(self) -> bool:
        return self.compiler.compiler_type == "msvc"

    def _compile_variant(self, variant: Variant) -> list[str]:
        """Its objects; none where this compiler is too old for the instruction set."""
        macros = [(name, "1") for name in variant.macros] + [("LAYBY_VARIANT", variant.name)]
        flags = variant.msvc if self._is_msvc else variant.gnu
        try:
            return [
                name
                for source in VARIANT_SOURCES
                for name in self._compile(source, variant.name, macros, flags)
            ]
        except CompileError:
            if variant is PORTABLE:
                raise
            return []

    def _compile(
        self,
        source: str,
        folder: str,
        macros: list[tuple[str, str]] | None = None,
        flags: tuple[str, ...] = (),
    ) -> list[str]:
        return self.compiler.compile(
            [source],
            output_dir=str(Path(self.build_temp) / folder),
            macros=macros,
            include_dirs=[str(FOLDER)],
            extra_postargs=[*(MSVC_FLAGS if self._is_msvc else GNU_FLAGS), *flags],
        )


setup(
    ext_modules=[Extension("kernels.cpu.layby_cpu", SOURCES, depends=HEADERS, optional=True)],
    cmdclass={"build_ext": BuildKernels},
)
