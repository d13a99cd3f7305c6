"""Finds and loads the native kernels, and turns their failures into exceptions.

`load_library` is cheap and may be called on any thread; what it returns is stateless. The objects made through it
(teams, weights, programs) belong to the thread that made them. A call into the library lets go of the interpreter
lock. No torch, nothing of the engine.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import TracebackType

from kernels.cpu.declarations import ABI, declare

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}
LIBRARY_PATH = Path(__file__).with_name("layby_cpu" + _SUFFIX.get(sys.platform, ".so"))


class NativeUnavailable(Exception):
    """The native kernels cannot be used here; the message says why and what to do."""


class NativeError(Exception):
    """A native call refused what it was given."""


class NativeLibrary:
    """The loaded library and one of its variants. `variants` are those this CPU can run, best first."""

    def __init__(self, functions: ctypes.CDLL, variant: str | None = None) -> None:
        """Choose the best variant, or the one named; NativeUnavailable when this CPU cannot run it."""
        self.functions = functions
        names: list[str] = []
        while name := functions.layby_variant(len(names)):
            names.append(name.decode())
        self.variants = tuple(n for n in names if functions.layby_variant_runs_here(n.encode()))
        if variant is not None and variant not in self.variants:
            why = (
                f"this CPU cannot run the kernel variant {variant}"
                if variant in names
                else f"no kernel variant here is called {variant}"
            )
            raise NativeUnavailable(f"{why}; choose one of {', '.join(self.variants)}")
        self.variant = variant or self.variants[0]

    def check(self, result: int | None) -> int:
        """`result`, unless it says that the call failed: then NativeError, or MemoryError."""
        if result is not None and result >= 0:
            return result
        message = self.functions.layby_error().decode()
        if message == "not enough memory":
            raise MemoryError(message)
        raise NativeError(message)


class ThreadTeam:
    """The threads that run steps; the caller of a step is one of them. Used by one thread at a time."""

    def __init__(self, library: NativeLibrary, threads: int) -> None:
        """Start threads - 1 helpers; they sleep when there is nothing to do. Raises as `resize` does."""
        self._library = library
        self.handle = 0
        self.threads = 0
        self.resize(threads)

    def resize(self, threads: int) -> None:
        """Change the number of threads; between two steps only. NativeError, with the team as it was, where the system
        has no more threads."""
        if threads < 1:
            raise ValueError(f"a team has at least 1 thread, not {threads}")
        if threads == self.threads:
            return
        handle = self._library.check(self._library.functions.layby_team_new(threads))
        self.close()
        self.handle, self.threads = handle, threads

    def close(self) -> None:
        """Stop the helpers. Idempotent."""
        if self.handle:
            self._library.functions.layby_team_free(self.handle)
        self.handle = self.threads = 0

    def __enter__(self) -> ThreadTeam:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def load_library(variant: str | None = None, path: Path = LIBRARY_PATH) -> NativeLibrary:
    """Load the kernels. NativeUnavailable where they were not built, are of another version, or cannot run here."""
    if not path.is_file():
        raise NativeUnavailable(
            "the native kernels were not built when Layby was installed, for want of a C++ compiler; "
            "install one (g++, clang or Visual C++) and install Layby again"
        )
    try:
        functions = ctypes.CDLL(str(path))
        declare(functions)
    except (OSError, AttributeError) as error:
        raise NativeUnavailable(
            f"{path.name} cannot be loaded ({error}); install Layby again"
        ) from error
    if functions.layby_abi() != ABI:
        raise NativeUnavailable(f"{path.name} is of another version of Layby; install Layby again")
    return NativeLibrary(functions, variant)
