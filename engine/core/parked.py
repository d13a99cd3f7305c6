"""What is known of a parked sequence, and the orders that move its pages out of the pool and back. Pure data.

*Parked in place*, the pool being host memory: the pages stay where they are and change accounts.
*Parked by copy*: pages that a sequence alone holds are gathered into a host buffer and freed; a
buffer has *slots* of one page each. *Recompute*: nothing is kept but the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from engine.runs import ParkReason


class Fate(Enum):
    """What becomes of a parked sequence's state: SWAP keeps it, RECOMPUTE drops it and computes it again later."""

    SWAP = "swap"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class ParkedState:
    """Why and since when a sequence is out, and what it needs room for when it comes back."""

    since_s: float
    step: int
    fate: Fate
    reason: ParkReason
    held_tokens: int
    num_fails: int = 0
    """Restores that failed."""
    retry_s: float = 0.0
    """Not to be restored before this moment."""


class SavedPage(NamedTuple):
    """Where a page lies that was copied out of the pool."""

    buffer_id: int
    slot: int


class CopyWay(Enum):
    """Out of the pool into host memory, or back."""

    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True)
class PageCopy:
    """An order to the runtime: copy pages between the pool and host buffers, in one go.

    `pages[i]` and `saved[i]` are the two ends of one page. OUT names one buffer: it must have
    `capacity_bytes` before the copy starts, be made if it is new and may be replaced if it is
    smaller, since it holds nothing then. The step of the batch that carries the order may run only
    after a copy that `must_land`; for any other the runtime reports `Scheduler.copy_landed`.
    """

    copy_id: int
    way: CopyWay
    request_ids: tuple[str, ...]
    pages: tuple[int, ...]
    saved: tuple[SavedPage, ...]
    capacity_bytes: int
    must_land: bool


@dataclass(frozen=True, slots=True)
class Released:
    """Memory that holds nothing any more and can be given back: pages of the arena, and whole host buffers.

    A buffer may be named that was never made, because the copy to it failed.
    """

    pages: tuple[int, ...] = ()
    buffer_ids: tuple[int, ...] = ()


class EndReason(Enum):
    """Why the scheduler itself ended a sequence."""

    POOL_FULL = "pool_full"
    """It does not fit, and nothing can be parked for it: the context error."""
    OUTGREW_POOL = "outgrew_pool"
    """It and its siblings do not fit the pool together, even with nobody else in it."""
    WAITED_TOO_LONG = "waited_too_long"
    """It has waited for as long as it was willing to."""
    RESTORE_FAILED = "restore_failed"
    """Its state could not be copied back, again and again."""
