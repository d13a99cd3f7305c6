"""One seed is one world: a tiny pool, a way of parking, knobs, and what people and programs do to it.

Worlds are made so that everything rare happens often: prompts that begin alike, pools that fit one sequence, budgets
that fit none, copies that land late or never, clocks that crawl or leap.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from random import Random
from typing import get_args

from engine.api import FinishReason, Priority
from engine.core.config import Knobs, ParkConfig, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.host_pool import ROUNDING_BYTES
from engine.core.parked import CopyWay, EndReason
from engine.core.scheduler import Scheduler
from engine.core.types import SeqStatus, Sequence
from engine.core.victim_policies import VICTIM_POLICIES
from engine.runs import ParkCause, SteeringCommand
from fakes.fake_copier import FakeCopier
from fakes.fake_runner import FakeRunner

End = FinishReason | EndReason

NOT_REPORTED = (ParkCause.RELOAD, ParkCause.OWNER_AWAY)
"""Causes of parks that are not the scheduler's, or of those who have ended."""

KINDS = (
    *(f"parked under {name}" for name in VICTIM_POLICIES),
    *(f"parked for {cause.value}" for cause in ParkCause if cause not in NOT_REPORTED),
    *(f"parked at priority {priority.name}" for priority in Priority),
    *(f"parked, memory {memory.value}" for memory in ParkMemory),
    "parked, memory copied beside steps",
    "parked siblings",
    *(f"aborted {status.value}" for status in SeqStatus if status is not SeqStatus.FINISHED),
    *(f"copy {way.value} failed" for way in CopyWay),
    *(f"ended: {reason.value}" for reason in EndReason),
    *(f"command {command.__name__}" for command in get_args(SteeringCommand)),
    *(
        f"followed {status.value}"
        for status in (SeqStatus.STAYING, SeqStatus.PARKING, SeqStatus.PARKED)
    ),
    "followed, state kept outside",
    "room lent out",
)
"""What the fuzz must reach, by name: what happened, under what, to whom. The registries give the names."""


@dataclass(slots=True)
class Told:
    """What one workload did; sums of it show that the fuzz reached what it is meant to reach."""

    steps: int = 0
    sequences: int = 0
    families: int = 0
    parks: int = 0
    recomputes: int = 0
    rotations: int = 0
    last_resorts: int = 0
    copied_pages: int = 0
    released_pages: int = 0
    cached_tokens: int = 0
    found_again_tokens: int = 0
    followed_tokens: int = 0
    shifts: int = 0
    stopped: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each of `KINDS` happened."""

    def counts(self) -> Counter[str]:
        """All numbers by name, those that are 0 included."""
        found = Counter({name: self.kinds[name] for name in KINDS})
        for one in fields(self):
            if one.name != "kinds":
                found[one.name] = getattr(self, one.name)
        return found


@dataclass(slots=True)
class Case:
    """A sequence and what must become of it."""

    seq: Sequence
    stop_ids: frozenset[int]
    expected: list[int]
    reason: FinishReason
    seen: SeqStatus = SeqStatus.WAITING
    said: list[int] = field(default_factory=list)
    end: End | None = None
    is_broken: bool = False
    """Aborted, or lost in a failed step: its tokens must be a beginning of `expected`."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of the line, since when it is, and for how many seconds and steps it may be at most."""

    seq: Sequence
    longest: tuple[float, int]
    since_s: float
    since_step: int


@dataclass(frozen=True, slots=True)
class Leader:
    """Who may not be sent out for a step, and the step in which it last advanced or became the leader."""

    seq: Sequence
    step: int


@dataclass(slots=True)
class World:
    """A workload being played."""

    random: Random
    returns: Random
    """Who comes back from another life of the program; dice of their own, so that the rest of a seed's world stays."""
    config: SchedulerConfig
    scheduler: Scheduler
    runner: FakeRunner
    copier: FakeCopier
    checked: bool
    """Whether the scheduler recounts in every step; without, only what the runner reads can show a mistake."""
    beginnings: list[list[int]]
    step_s: float
    fails: dict[CopyWay, float]
    """Probabilities that a copy fails."""
    meddles: float
    """Probability of a command by hand before a step."""
    arrives: float
    """Probability that one more request comes before a step."""
    reply_tokens: list[int]
    """What requests want at most."""
    keeps: list[int | None]
    """Tokens that context shifts keep; None: the context is not shifted."""
    answers: float
    """Probability that the owner of one that stays answers before a step."""
    cuts: dict[SeqStatus, float]
    """Probabilities that somebody who is being copied out or back is given up before a step."""
    cases: dict[str, Case] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    now_s: float = 0.0
    to_come: int = 0
    arrivals: int = 0
    budget_bytes: int = 0
    head: Head | None = None
    leader: Leader | None = None
    may_be_ended: bool = False
    """Whether parking has been off, or memory run out: then one that does not fit is ended."""


def make_world(seed: int, *, checked: bool) -> World:
    """The world of a seed, before anything has happened in it."""
    random = Random(seed)
    page_tokens = random.choice([1, 2, 3, 4, 8])
    num_pages = random.choice([random.randint(2, 24), random.randint(20, 60)])
    pool_tokens = num_pages * page_tokens
    park = _make_park(random, num_pages)
    config = SchedulerConfig(
        num_pages=num_pages,
        page_tokens=page_tokens,
        max_running=random.randint(1, 7),
        step_tokens=random.choice([1, 2, 3, 5, 8, 16, 64]),
        window_tokens=random.choice([0, 0, 0, random.randint(2, pool_tokens)]),
        victim_policy=random.choice(["fcfs", *sorted(VICTIM_POLICIES)]),
        park=park,
        knobs=_make_knobs(random, page_tokens),
    )
    longest = min(config.sequence_tokens // 2 + 1, 40)
    scheduler, runner = Scheduler(config), FakeRunner(config)
    returns = Random(-1 - seed)
    return World(
        random=random,
        returns=returns,
        answers=returns.choice([0, 0.05, 0.5]),
        config=config,
        scheduler=scheduler,
        runner=runner,
        copier=FakeCopier(config, runner),
        checked=checked,
        beginnings=[[random.randrange(3) for _ in range(longest)] for _ in range(3)],
        step_s=random.choice([0.01, 0.03, 0.1, 0.5, 2.0]),
        fails={
            CopyWay.OUT: random.choice([*8 * [0], 0.05, 0.3]),
            CopyWay.IN: random.choice([*8 * [0], 0.05, 0.3, 0.9, 0.9]),
        },
        meddles=random.choice([0, 0, 0.02, 0.1]),
        arrives=random.choice([0.4, 0.9]),
        reply_tokens=random.choice([[0, 1, 5, 20, 40, 40, 1000], [40, 80, 200]]),
        keeps=random.choice([*3 * [[None, None, None, 0, 3]], [0, 3]]),
        cuts={
            SeqStatus.PARKING: random.choice([0, 0, 0, 0.3]),
            SeqStatus.RESTORING: random.choice([0, 0, 0.3, 0.6]),
        },
        to_come=random.randint(3, 16),
        budget_bytes=park.budget_bytes,
        may_be_ended=park.budget_bytes == 0,
    )


def random_budget(random: Random, memory: ParkMemory, num_pages: int, page_bytes: int) -> int:
    """Nothing, everything, or something between."""
    pages = random.choice([0, 1, num_pages // 2, num_pages, 3 * num_pages, *3 * [10 * num_pages]])
    if memory is ParkMemory.NONE:
        return random.choice([-1, -1, -1, 0])
    if random.random() < 0.15:
        return -1
    return pages * page_bytes + random.choice([0, page_bytes // 2])


def _make_park(random: Random, num_pages: int) -> ParkConfig:
    memory = random.choice([ParkMemory.NONE, *2 * [ParkMemory.IN_PLACE], *3 * [ParkMemory.COPIED]])
    page_bytes = random.choice([ROUNDING_BYTES, ROUNDING_BYTES * 3 // 4, ROUNDING_BYTES * 5 // 2])
    return ParkConfig(
        memory=memory,
        page_bytes=page_bytes,
        budget_bytes=random_budget(random, memory, num_pages, page_bytes),
        arena_pages=random.randint(num_pages, 6 * num_pages),
        is_async=memory is ParkMemory.COPIED and random.random() < 0.7,
        rotate_after_s=random.choice([2.0, 2.0, 2.0, 0.0, 20.0]),
        resume_order=random.choice([*7 * [ResumeOrder.HEAD], ResumeOrder.PASS]),
    )


def _make_knobs(random: Random, page_tokens: int) -> Knobs:
    return Knobs(
        park_every_tokens=random.choice([*8 * [0], 1, 8]),
        is_planner_on=random.random() > 0.1,
        fail_save=random.choice([*8 * [0], 1, 3]),
        granularity_tokens=random.choice([*12 * [0], 2 * page_tokens]),
    )
