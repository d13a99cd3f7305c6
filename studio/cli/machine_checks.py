"""The doctor's look at the machine: system, processor, memory and graphics. Loads no torch unless asked."""

from __future__ import annotations

import importlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil

from kernels.cpu.library import NativeUnavailable, load_library
from studio.cli.checks import Check, ok, warn

_CPU_FEATURES = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
    "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip
_LITTLE_MEMORY_BYTES = 2 << 30


def check_machine(*, is_deep: bool) -> Iterator[Check]:
    """One check after the other, so that the first lines are there while later ones still look."""
    yield ok("system", f"{platform.platform()}, {platform.machine()}")
    yield _check_processor()
    yield _check_kernels()
    yield _check_memory()
    yield _check_graphics()
    if is_deep:
        yield _check_torch_devices()


def _check_processor() -> Check:
    physical = psutil.cpu_count(logical=False)
    logical = psutil.cpu_count(logical=True)
    name, features = describe_processor()
    cores = f"{physical or 'unknown'} cores, {logical or 'unknown'} threads"
    return ok("processor", f"{name}, {cores}" + (f", {' '.join(features)}" if features else ""))


def describe_processor() -> tuple[str, list[str]]:
    """The processor's name, and those of its features that kernels care about, where the system tells them."""
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return answer.stdout.strip() or platform.processor(), []
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine(), []
    facts: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    name = facts.get("model name") or platform.machine()
    return name, [feature for feature in _CPU_FEATURES if feature in flags]


def _check_kernels() -> Check:
    try:
        variants = load_library().variants
    except NativeUnavailable as error:
        return warn("kernels", f"torch computes on the CPU, several times slower: {error}")
    return ok("kernels", f"native {variants[0]} computes on the CPU; runs {', '.join(variants)}")


def _check_memory() -> Check:
    memory = psutil.virtual_memory()
    text = f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free"
    if memory.available < _LITTLE_MEMORY_BYTES:
        return warn("memory", f"{text}; close other programs, or load a small model only")
    return ok("memory", text)


def _check_graphics() -> Check:
    """What the driver's own tool and the build of torch tell, without loading either."""
    build = _torch_build()
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ok("graphics", f"no NVIDIA driver found; torch is built for {build}")
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return warn(
            "graphics", "nvidia-smi does not answer; restart the machine, or use --device cpu"
        )
    if answer.returncode != 0 or not answer.stdout.strip():
        return warn(
            "graphics",
            f"nvidia-smi failed: {answer.stderr.strip() or answer.stdout.strip()}; use --device cpu",
        )
    devices = "; ".join(answer.stdout.strip().splitlines())
    if build == "cpu":
        return warn(
            "graphics",
            f"{devices}, but torch is built for the CPU only; install a CUDA build to use it",
        )
    return ok("graphics", f"{devices}; torch is built for {build}")


def _torch_build() -> str:
    """`cpu`, `cu128` and so on, from the version's ending; `the default devices` where it has none."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "nothing: it is not installed"
    return version.partition("+")[2] or "the default devices"


def _check_torch_devices() -> Check:
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        return warn("devices", f"torch cannot be loaded: {error}; install Layby again")
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [
            f"cuda: {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())
        ]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return ok("devices", f"torch {torch.__version__} sees {', '.join(devices)}")
