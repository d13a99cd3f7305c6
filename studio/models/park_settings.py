"""The settings of parking: its memory, its policy, and what tests may twist. Plain values; any thread, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.options import LEAST_POOL_TOKENS
from studio.models.setting_field import AppliesAt, SettingInfo, about


class ParkPolicy(Enum):
    """Who is parked when room is short; the values are `engine.runs.POLICY_NAMES`."""

    FCFS = "fcfs"
    COST = "cost"
    SMALLEST = "smallest"
    LARGEST = "largest"
    YOUNGEST = "youngest"
    OLDEST = "oldest"


class ResumeOrder(Enum):
    """Whether the head of the line may be passed; the values are `engine.runs.RESUME_NAMES`."""

    HEAD = "head"
    PASS = "pass"


class OnOff(Enum):
    """A switch whose flag is written with its value."""

    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkSettings:
    """Parking: what happens when the pool is full."""

    ram_mib: int = field(
        default=8192,
        metadata=about(
            SettingInfo(
                title="Memory for parked chats",
                help="most MiB that parked requests may hold; 0: nobody is parked, -1: no limit",
                env="LAYBY_PREEMPT_RAM",
                env_aliases=("LLAMA_ARG_PREEMPT_RAM",),
                flags=("--preempt-ram",),
                low=-1,
                high=1 << 30,
                unit="MiB",
                lowest="no limit",
            )
        ),
    )
    policy: ParkPolicy = field(
        default=ParkPolicy.FCFS,
        metadata=about(
            SettingInfo(
                title="Who is parked",
                help="who is parked when room is short, and in which order they return; "
                "after some seconds in line a chat gets its turn whoever has to give way",
                env="LAYBY_PREEMPT_POLICY",
                env_aliases=("LLAMA_ARG_PREEMPT_POLICY",),
                flags=("--preempt-policy",),
            )
        ),
    )
    is_async: bool = field(
        default=True,
        metadata=about(
            SettingInfo(
                title="Copy in the background",
                help="where a parked chat has to be copied out of the pool, the others go on writing meanwhile",
                env="LAYBY_PREEMPT_ASYNC",
                env_aliases=("LLAMA_ARG_PREEMPT_ASYNC",),
                flags=("--preempt-async",),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    folder: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Folder for parked chats",
                help="parked chats are kept there too and go on after a restart; empty: in memory alone",
                env="LAYBY_PREEMPT_DISK",
                flags=("--preempt-disk",),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkTestSettings:
    """Knobs that make parks happen, for tests; nobody else is shown them."""

    every_tokens: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Park every so many tokens",
                help="park every reply each time it has so many tokens more; 0: never",
                env="LAYBY_TEST_PREEMPT_EVERY",
                flags=("--test-preempt-every",),
                low=0,
                high=1 << 31,
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
    planner: OnOff = field(
        default=OnOff.ON,
        metadata=about(
            SettingInfo(
                title="Planner",
                help="off: nobody is parked ahead of a step that finds no page, only then",
                env="LAYBY_TEST_PREEMPT_PLANNER",
                flags=("--test-preempt-planner",),
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
    fail_save: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Park without memory",
                help="the so-manieth park finds no memory for its state; 0: none",
                env="LAYBY_TEST_PREEMPT_FAIL_SAVE",
                flags=("--test-preempt-fail-save",),
                low=0,
                high=1 << 31,
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
    granularity: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Planned page size",
                help="plan as if pages had so many tokens; 0: as many as they have",
                env="LAYBY_TEST_PREEMPT_GRANULARITY",
                flags=("--test-preempt-granularity",),
                low=0,
                high=1 << 31,
                step=LEAST_POOL_TOKENS,  # one page
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
    resume: ResumeOrder = field(
        default=ResumeOrder.HEAD,
        metadata=about(
            SettingInfo(
                title="Order of return",
                help="whether the head of the line of parked requests may be passed",
                env="LAYBY_TEST_PREEMPT_RESUME",
                flags=("--test-preempt-resume",),
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
    copies: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Park by copy",
                help="copy parked state even where the pool is host memory",
                env="LAYBY_TEST_PREEMPT_COPY",
                flags=("--test-preempt-copy",),
                applies=AppliesAt.NEXT_LOAD,
                is_hidden=True,
            )
        ),
    )
