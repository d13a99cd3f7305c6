"""What this machine has, as far as it can be told without loading anything. Any thread, quick."""

from __future__ import annotations

import psutil

from engine.api import EngineSnapshot, EngineState
from kernels.cpu.library import NativeUnavailable, load_library
from studio.models.model_fit import Machine


def look_at_machine(snapshot: EngineSnapshot) -> Machine:
    """Memory and cores now; what the model that is loaded holds counts as free, for another takes its place."""
    memory = psutil.virtual_memory()
    given_back = 0
    if snapshot.state is EngineState.READY and snapshot.model is not None:
        pool = snapshot.pool
        used_pages = pool.total_pages - pool.free_pages
        given_back = snapshot.model.size_bytes + used_pages * pool.page_bytes
    return Machine(
        total_bytes=memory.total,
        free_bytes=min(memory.total, memory.available + given_back),
        cores=psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        has_native_kernels=_has_native_kernels(),
    )


def _has_native_kernels() -> bool:
    try:
        load_library()
    except NativeUnavailable:
        return False
    return True
