"""What the machine has: devices, cores and memory, and how large a pool fits. Engine thread."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

import psutil
import torch

from engine.api import Device, LoadOptions
from engine.core.config import PAGE_TOKENS
from engine.errors import InvalidRequest, NotEnoughMemory
from engine.models.spec import ModelSpec

_POOL_SHARE = 0.5
"""Of the memory that is free once the weights are in, so much at most becomes the pool when no size is asked for."""
GIB = 1 << 30


def available_devices() -> tuple[Device, ...]:
    """What AUTO chooses from, best first."""
    found = []
    if torch.cuda.is_available():
        found.append(Device.CUDA)
    if torch.backends.mps.is_available():
        found.append(Device.MPS)
    return (*found, Device.CPU)


def choose_device(wish: Device) -> torch.device:
    """Raises InvalidRequest, saying what is there, for a device that is not."""
    available = available_devices()
    if wish is Device.AUTO:
        wish = available[0]
    if wish not in available:
        names = ", ".join(device.value for device in available)
        raise InvalidRequest(
            f"device is {wish.value}, this machine has {names}; choose one of these or auto",
            param="device",
        )
    return torch.device(wish.value)


def default_threads() -> int:
    """Physical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))


def free_bytes(device: torch.device) -> int:
    """Memory that can still be taken on the device; on shared memory (CPU, MPS) the system's."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available: int = psutil.virtual_memory().available
    return available


def return_freed_memory() -> None:
    """Give back to the system what was freed. Left to itself, glibc kept 500 MB of an unloaded model's 650."""
    with suppress(RuntimeError):  # of a device that has failed for good
        torch.cuda.empty_cache()
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
        raise NotEnoughMemory(
            f"a pool of {asked * PAGE_TOKENS:,} tokens needs {asked * page_bytes / GIB:.2f} GiB, "
            f"{max(0, limit) / GIB:.2f} GiB are free for it; ask for a smaller pool, close other programs or take a "
            "smaller model"
        )
    return pages
