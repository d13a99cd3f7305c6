"""From the options of a load to the scheduler's configuration of parks. Plain figures; engine thread.

Where the pool is host memory, a parked request's pages stay where they are and belong to the parked account of the same
arena. Elsewhere its state is copied to host memory, beside the steps where that memory can be pinned.
"""

from __future__ import annotations

import logging

from engine.api import Device, LoadOptions
from engine.core.config import PAGE_TOKENS, Knobs, ParkConfig, ParkMemory, ResumeOrder
from engine.core.host_pool import NO_LIMIT
from engine.errors import InvalidRequest

_LOG = logging.getLogger(__name__)
_MIB = 1 << 20
_WINDOWS_PER_SEAT = 2
"""Address space for parks in place: one window for each seat, and as much again for what is held by hand."""


def plan_parks(
    options: LoadOptions, device: Device, *, page_bytes: int, num_pages: int, free: int
) -> ParkConfig:
    """How parks are made, given the bytes of host memory that are free beside weights and pool."""
    is_in_place = device is Device.CPU and not options.test_preempt_copy
    window_pages = min(num_pages * _WINDOWS_PER_SEAT * options.parallel, max(free, 0) // page_bytes)
    return ParkConfig(
        memory=ParkMemory.IN_PLACE if is_in_place else ParkMemory.COPIED,
        budget_bytes=budget_bytes(options.preempt_ram_mib, most_budget_bytes(free)),
        page_bytes=page_bytes,
        arena_pages=num_pages + window_pages if is_in_place else num_pages,
        is_async=options.preempt_async and not is_in_place and _copies_beside_steps(device),
        resume_order=ResumeOrder(options.test_preempt_resume),
    )


def _copies_beside_steps(device: Device) -> bool:
    """Whether copies can run while the device computes; a notice in the log where they should and cannot."""
    if device is not Device.CUDA:
        return device is Device.CPU
    # Here and not above: it imports torch.
    from engine.runtime.cuda_lane import can_pin

    if not can_pin(device):
        _LOG.warning(
            "host memory cannot be pinned on this machine: steps wait while a request is parked or restored"
        )
        return False
    return True


def most_budget_bytes(free: int) -> int:
    """The largest budget, given the bytes of host memory that are free beside weights and pool.

    Never 0, which would mean that nobody is parked: without memory, parked requests are computed again.
    """
    return max(free // 2, 1)


def budget_bytes(wanted_mib: int, most_bytes: int) -> int:
    """The budget asked for, lowered to `most_bytes` with a notice in the log."""
    if wanted_mib == NO_LIMIT:
        return NO_LIMIT
    return lowered_budget(wanted_mib * _MIB, most_bytes)


def lowered_budget(wanted_bytes: int, most_bytes: int) -> int:
    """The same for bytes; no limit stays no limit."""
    if wanted_bytes <= most_bytes:
        return wanted_bytes
    _LOG.info(
        "parked requests may hold %d MiB instead of %d MiB: half of the memory that is free",
        most_bytes // _MIB,
        wanted_bytes // _MIB,
    )
    return most_bytes


def mib_of(budget_bytes: int) -> int:
    """A budget in whole MiB, rounded up: 0 stays off, and -1 no limit."""
    return budget_bytes if budget_bytes == NO_LIMIT else -(-budget_bytes // _MIB)


def make_knobs(options: LoadOptions) -> Knobs:
    """What tests twist. Raises InvalidRequest on a granularity that is not in whole pages."""
    if options.test_preempt_granularity % PAGE_TOKENS:
        raise InvalidRequest(
            f"test_preempt_granularity is {options.test_preempt_granularity}, allowed are multiples of {PAGE_TOKENS}",
            param="test_preempt_granularity",
        )
    return Knobs(
        park_every_tokens=options.test_preempt_every,
        is_planner_on=options.test_preempt_planner,
        fail_save=options.test_preempt_fail_save,
        granularity_tokens=options.test_preempt_granularity,
    )
