"""A stream of its own for copies on a CUDA device, and pinned host memory. Engine thread; fences on any thread.

Out: the stream waits for the work of the steps so far before it reads their pages. In: nobody reads the pages before
the engine thread has been told that the fence was passed. So no step waits for a copy, and no copy is early.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from engine.api import Device
from kernels.host_memory import reserve

_PROBE_BYTES = 1 << 20


class CudaLane:
    """Implements `device_copies.Lane`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]

    def pin(self, memory: np.ndarray) -> bool:
        """See `device_copies.Lane`. torch's own pinned memory comes in powers of two and is never given back."""
        failed = int(self._runtime.cudaHostRegister(memory.ctypes.data, memory.nbytes, 0))
        if failed:
            # The failure is still on record, and whichever kernel starts next would be taken to have failed.
            with suppress(RuntimeError):
                torch.zeros(1, device=self._device)
        return not failed

    def unpin(self, memory: np.ndarray) -> None:
        """See `device_copies.Lane`."""
        self._runtime.cudaHostUnregister(memory.ctypes.data)

    def upload(self, values: np.ndarray) -> Tensor:
        """See `device_copies.Lane`. From memory that is not pinned the engine thread would wait for the stream."""
        return torch.from_numpy(values).pin_memory().to(self._device, non_blocking=True)

    def issue(self, work: Callable[[], None]) -> torch.cuda.Event:
        """See `device_copies.Lane`."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            work()
        fence = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # whoever waits for it sleeps
        fence.record(self._stream)
        return fence


def can_pin(device: Device) -> bool:
    """Whether host memory can be pinned on this machine: tried with a little."""
    lane, memory = (
        CudaLane(torch.device(device.value)),
        np.frombuffer(reserve(_PROBE_BYTES), np.uint8),
    )
    is_pinned = lane.pin(memory)
    if is_pinned:
        lane.unpin(memory)
    return is_pinned
