"""How a model is loaded and freed: size of the pool, device, parking, and what tests may twist.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from engine.checks import check_name, check_range
from engine.errors import InvalidRequest
from engine.runs import POLICY_NAMES, RESUME_NAMES


class Device(Enum):
    """Where the tensors live; AUTO picks the fastest that is there and supported."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"


class KvType(Enum):
    """How keys and values are stored in the pool."""

    F16 = "f16"
    Q8_0 = "q8_0"
    """Bytes, with a scale for each 32 of a head's numbers: a little over half of f16's memory."""
    F32 = "f32"


CPU_VARIANTS = (
    "auto", "native", "torch",
    "avx512bf16", "avx512vnni", "avx2vnni", "avx2", "i8mm", "dotprod", "portable",
)  # fmt: skip
"""What may be asked to compute on the CPU; those from the fourth on are instruction sets of the native kernels."""

LEAST_POOL_TOKENS = 32
"""The smallest pool that can be asked for: one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a model is loaded. Raises InvalidRequest, naming the field, when a value is out of bounds."""

    pool_tokens: int = 0
    """Size of the KV pool, shared by all requests; 0: what memory allows, at most the model's window x parallel.
    Otherwise at least `LEAST_POOL_TOKENS`."""
    parallel: int = 4
    """Most requests that run at once; further ones wait in line."""
    batch_tokens: int = 256
    """Most tokens computed in one step; long prompts are read in chunks of this."""
    threads: int = 0
    """CPU threads for the kernels; 0: one per physical core."""
    device: Device = Device.AUTO
    cpu_variant: str = "auto"
    """What computes on the CPU. auto: the native kernels where they were built, else torch, several times slower;
    native: no model without them; torch; or one of their instruction sets, like avx2."""
    kv_type: KvType = KvType.F16
    seed: int | None = None
    """Seed for requests that name none; None draws one for each."""
    preempt_ram_mib: int = 8192
    """Most MiB that parked requests hold, at most half of the memory free once the model is loaded. 0: nobody is
    parked; -1: no limit."""
    preempt_policy: str = "fcfs"
    """Who is parked and in which order they return: one of `engine.runs.POLICY_NAMES`."""
    preempt_async: bool = True
    """Where parked state is copied, copy beside the steps."""
    preempt_disk: Path | None = None
    """Folder that durable requests are kept in while they are parked, so that they outlive the model and the program;
    None: they are not."""
    context_shift: bool = False
    """A reply that fills the window goes on: the oldest half of what it has is forgotten."""
    test_preempt_every: int = 0
    """Park every reply each time it has so many tokens more; 0: never."""
    test_preempt_planner: bool = True
    """Off: nobody is parked ahead of a step that finds no page, only then."""
    test_preempt_fail_save: int = 0
    """The so-manieth park that would keep its state finds no memory for it; 0: none."""
    test_preempt_granularity: int = 0
    """Plan as if pages had so many tokens; 0: as many as they have."""
    test_preempt_resume: str = "head"
    """Whether somebody may pass the head of the line: one of `engine.runs.RESUME_NAMES`."""
    test_preempt_copy: bool = False
    """Copy parked state even where the pool is host memory."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("pool_tokens", 0, 1 << 31), ("parallel", 1, 256), ("batch_tokens", 16, 8192), ("threads", 0, 1024),
            ("preempt_ram_mib", -1, 1 << 30), ("test_preempt_every", 0, 1 << 31),
            ("test_preempt_fail_save", 0, 1 << 31), ("test_preempt_granularity", 0, 1 << 31),
        ):  # fmt: skip
            check_range(name, getattr(self, name), low, high)
        if 0 < self.pool_tokens < LEAST_POOL_TOKENS:
            raise InvalidRequest(
                f"pool_tokens is {self.pool_tokens}, the least is {LEAST_POOL_TOKENS}, one page; "
                "ask for more, or for 0, which takes what memory allows",
                param="pool_tokens",
            )
        check_name("cpu_variant", self.cpu_variant, CPU_VARIANTS)
        check_name("preempt_policy", self.preempt_policy, POLICY_NAMES)
        check_name("test_preempt_resume", self.test_preempt_resume, RESUME_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModel:
    """Replace the model. Requests alive end with ModelUnavailable, those that are kept on disk with Suspended,
    those that should be and cannot with ParkDiskFailed.

    The outcome arrives as ModelChanged: of the model that stays, where this was to be done `only_if_idle` and is not.
    """

    path: Path
    name: str
    options: LoadOptions = field(default_factory=LoadOptions)
    carries_on: bool = False
    """For the same model with other options: requests alive are parked and go on afterwards, from the same token, as
    far as they fit. Groups of several end as without."""
    only_if_idle: bool = False
    """Leave the model that is there as it is while any request is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadModel:
    """Free the model, also while it is still loading. Requests alive end as with LoadModel."""

    only_if_idle: bool = False
    """Do nothing while any request is alive."""
