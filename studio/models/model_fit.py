"""Does a model fit into memory, and how large is its pool? Pure arithmetic, the engine's own rules; no Qt.

The engine has the last word when it loads (`engine.runtime.device.pool_pages`, `engine.runtime.park_plan`); this tells
beforehand what it will say, from facts that can be read without loading.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from engine.api import Device, KvType, LoadOptions
from studio.models.capacity import PAGE_TOKENS, Capacity, capacity_of

_POOL_SHARE = 0.5
"""Of the memory that is free beside the weights, so much at most becomes the pool when no size is asked for."""
_TIGHT_SHARE = 0.9
_BYTES_OF_VALUE = {"f32": 4.0, "f16": 2.0}
_FLOAT32_BYTES = 4
_MIB = 1 << 20


class Verdict(Enum):
    """Whether it fits."""

    FITS = "fits"
    TIGHT = "tight"
    """It fits, and takes nearly all that is free."""
    TOO_LARGE = "too_large"
    UNKNOWN = "unknown"
    """The files do not say enough, or the model is to run on a device whose memory is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is to fit into."""

    total_bytes: int
    free_bytes: int
    """With what the model that is loaded now would give back."""
    cores: int
    has_native_kernels: bool
    """Without them weights are held as float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a model takes with certain settings."""

    verdict: Verdict
    weights_bytes: int
    pool_tokens: int
    pool_bytes: int
    park_bytes: int
    """Most that parked chats may hold beside the pool, lowered as the engine lowers it; -1: no limit."""
    free_bytes: int
    window_tokens: int
    """Most tokens of one chat."""
    parallel: int

    @property
    def needed_bytes(self) -> int:
        """Weights and a full pool. What parked chats hold comes and goes, and is taken only while it is there."""
        return self.weights_bytes + self.pool_bytes

    def capacity(self, chat_tokens: int) -> Capacity:
        """How many chats of that length run at once, and what becomes of one more."""
        return capacity_of(
            self.pool_tokens,
            chat_tokens=chat_tokens,
            parallel=self.parallel,
            can_park=self.park_bytes != 0,
        )


class Sized(Protocol):
    """What must be known of a model: of one that is here its `ModelInfo`, of another the catalogue's entry."""

    @property
    def parameters(self) -> int:
        """How many weights it has."""

    @property
    def size_bytes(self) -> int:
        """Of its files."""

    @property
    def context_tokens(self) -> int:
        """Most tokens that it reads at once; 0 if its files do not say."""

    @property
    def kv_values_per_token(self) -> int:
        """Numbers that the pool keeps for a token; 0 if its files do not say."""


def plan_fit(info: Sized, options: LoadOptions, machine: Machine) -> Fit:
    """What the model would take. Nothing is promised where the verdict is UNKNOWN."""
    is_float = not machine.has_native_kernels or options.cpu_variant == "torch"
    weights = info.parameters * _FLOAT32_BYTES if is_float else info.size_bytes
    page_bytes = round(info.kv_values_per_token * bytes_of_value(options.kv_type) * PAGE_TOKENS)
    left = max(0, machine.free_bytes - weights)
    pages = _pool_pages(info, options, page_bytes, left)
    pool_tokens, pool_bytes = pages * PAGE_TOKENS, pages * page_bytes
    most_parked = max(left - pool_bytes, 2) // 2
    wanted = options.preempt_ram_mib
    window = info.context_tokens or pool_tokens
    return Fit(
        verdict=_verdict(info, options, weights + pool_bytes, machine.free_bytes),
        weights_bytes=weights,
        pool_tokens=pool_tokens,
        pool_bytes=pool_bytes,
        park_bytes=wanted if wanted <= 0 else min(wanted * _MIB, most_parked),
        free_bytes=machine.free_bytes,
        window_tokens=min(window, pool_tokens),
        parallel=options.parallel,
    )


def bytes_of_value(kind: KvType) -> float:
    """What one number of the pool takes; types of 8 bits with their scales some 1.06 bytes."""
    return _BYTES_OF_VALUE.get(kind.value, 34 / 32)


def largest_model(machine: Machine) -> float:
    """Parameters, in billions, of the largest model in 4 bits that leaves half of the memory to pool and programs."""
    bytes_per_parameter = 0.57 if machine.has_native_kernels else _FLOAT32_BYTES
    return machine.total_bytes / 2 / bytes_per_parameter / 1e9


def _pool_pages(info: Sized, options: LoadOptions, page_bytes: int, left: int) -> int:
    if options.pool_tokens:
        return -(-options.pool_tokens // PAGE_TOKENS)
    wanted = -(-info.context_tokens // PAGE_TOKENS) * options.parallel
    return min(wanted, int(left * _POOL_SHARE) // page_bytes) if page_bytes else wanted


def _verdict(info: Sized, options: LoadOptions, needed: int, free: int) -> Verdict:
    if not info.kv_values_per_token or options.device in (Device.CUDA, Device.MPS):
        return Verdict.UNKNOWN
    if needed > free:
        return Verdict.TOO_LARGE
    return Verdict.TIGHT if needed > free * _TIGHT_SHARE else Verdict.FITS
