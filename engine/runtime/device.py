"""What the machine has: devices, cores and memory, and how large a pool fits. Engine thread.

torch takes a second to import and 200 MB: it is asked for devices only where there may be another than the CPU.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

import psutil

from engine.api import Device, KvType, LoadOptions
from engine.core.config import PAGE_TOKENS
from engine.errors import InvalidRequest, NotEnoughMemory
from engine.models.spec import ModelSpec

_POOL_SHARE = 0.5
"""Of the memory that is free once the weights are in, so much at most becomes the pool when no size is asked for."""
GIB = 1 << 30
_GPU_FILES = {
    "linux": ("/dev/nvidiactl", "/dev/nvmap", "/dev/dxg", "/dev/kfd"),
    "win32": (r"C:\Windows\System32\nvcuda.dll",),
}
"""Where a driver that torch can use leaves one of these: NVIDIA's, Tegra's, WSL's and AMD's; NVIDIA's."""


def may_have_gpu() -> bool:
    """Whether torch might find a device beside the CPU; asks no more than the file system."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    files = _GPU_FILES.get(sys.platform)
    return files is None or any(Path(file).exists() for file in files)


def choose_device(wish: Device) -> Device:
    """Never AUTO. Raises InvalidRequest, saying what is there, for a device that is not."""
    if wish is Device.CPU or (wish is Device.AUTO and not may_have_gpu()):
        return Device.CPU
    # Here and not above: it imports torch.
    from engine.runtime.torch_device import available_devices

    available = available_devices()
    if wish is Device.AUTO:
        wish = available[0]
    if wish not in available:
        names = ", ".join(device.value for device in available)
        raise InvalidRequest(
            f"device is {wish.value}, this machine has {names}; choose one of these or auto",
            param="device",
        )
    return wish


def usable_cores() -> int:
    """Logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """Physical cores that this process may use."""
    usable = usable_cores()
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))


def free_bytes(device: Device) -> int:
    """Memory that can still be taken on the device; on shared memory (CPU, MPS) the system's."""
    if device is Device.CUDA:
        from engine.runtime.torch_device import cuda_free_bytes

        return cuda_free_bytes()
    available: int = psutil.virtual_memory().available
    return available


def return_freed_memory() -> None:
    """Give back to the system what was freed. Left to itself, glibc kept 500 MB of an unloaded model's 650."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def pool_pages(options: LoadOptions, spec: ModelSpec, page_bytes: int, free: int) -> int:
    """Pages of the pool, given their size and the bytes that are free beside the weights.

    Raises NotEnoughMemory when the size asked for, or one page, does not fit.
    """
    if options.pool_tokens:
        pages = -(-options.pool_tokens // PAGE_TOKENS)
        limit = free
    else:
        wanted = -(-spec.context_tokens // PAGE_TOKENS) * options.parallel
        limit = int(free * _POOL_SHARE)
        pages = min(wanted, limit // page_bytes)
    if pages < 1 or pages * page_bytes > limit:
        asked = max(1, pages)
        needed = f"{asked * page_bytes / GIB:,.2f} GB"
        if options.kv_type is KvType.Q8_0:
            raise NotEnoughMemory(
                f"a pool of {asked * PAGE_TOKENS:,} tokens needs {needed}, {max(0, limit) / GIB:,.2f} GB are free for "
                "it; ask for a smaller pool, close other programs or take a smaller model"
            )
        raise NotEnoughMemory(
            f"a pool of {asked * PAGE_TOKENS:,} tokens needs {needed}, {max(0, limit) / GIB:,.2f} GB are free for it; "
            "ask for a smaller pool, halve it with numbers of 8 bits (q8_0), close other programs or take a smaller "
            "model"
        )
    return pages
