"""What a park and a restore take: in place, and by copy. The caller's thread calls torch.

Parks are asked for by hand while somebody else goes on, so that all of it is the engine's own path: the plan, the copy,
the memory given back.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.api import LoadOptions
from engine.bench.memory_wall import MemoryWall
from engine.bench.step_rig import StepRig, StepTime, open_rig
from engine.bench.steps import settled_decodes
from engine.core.config import PAGE_TOKENS
from engine.core.types import SeqStatus, Sequence
from engine.errors import ModelUnavailable
from engine.formats.checkpoint import inspect_model
from engine.runs import ParkNow, ResumeNext

_MOST_TOKENS = 1500
_USUAL_STEPS = 8
_TOKENS_A_ROUND = 2 * (_USUAL_STEPS + 4) + 2 * PAGE_TOKENS
"""By so many tokens the sequence grows in a round at most: companions' prompts are read in small parts beside it."""
_COMPANION_TOKENS = 4 * PAGE_TOKENS
"""Prompt and reply of who goes on meanwhile."""
_MOST_STEPS = 1000
_LEAST_S = 1e-7
"""What a move takes that cannot be told from noise."""

_WALL_TRIES = 2


@dataclass(frozen=True, slots=True)
class _Measures:
    seconds: Callable[[StepTime], float]
    """Of a step, those in which a park shows."""
    wall_bytes_s: Callable[[], float]
    """How fast memory is copied at this moment."""


@dataclass(frozen=True, slots=True)
class MoveTime:
    """One park or restore: seconds beside what the step takes without, and bytes that were copied."""

    seconds: float
    num_bytes: int
    wall_bytes_s: float
    """How fast memory was copied just before or after, whichever was faster."""

    @property
    def bytes_s(self) -> float:
        return self.num_bytes / self.seconds

    @property
    def wall_share(self) -> float:
        return self.bytes_s / self.wall_bytes_s


@dataclass(frozen=True, slots=True)
class ParkTimes:
    """Of a sequence of so many tokens, each park and restore."""

    num_tokens: int
    token_bytes: int
    parks: tuple[MoveTime, ...]
    restores: tuple[MoveTime, ...]


def time_parks_in_place(path: Path, options: LoadOptions, *, rounds: int) -> ParkTimes:
    """How much longer the plan of a step takes that parks or restores. Raises as loading does."""
    lengths = _lengths(path, rounds)
    with open_rig(path, _options(options, lengths)) as rig:
        return _time(rig, lengths, rounds, _Measures(lambda step: step.plan_s, lambda: math.inf))


def time_parks_by_copy(
    path: Path, options: LoadOptions, wall: MemoryWall, *, rounds: int
) -> ParkTimes:
    """How much longer a step takes whose copy must land before it, beside its plan. Raises as loading does.

    The plan is what a park in place takes, and the cost model counts both.
    """
    lengths = _lengths(path, rounds)
    options = replace(_options(options, lengths), test_preempt_copy=True)
    measures = _Measures(
        lambda step: step.step_s - step.run_s - step.plan_s, lambda: wall.copy_bytes_s(_WALL_TRIES)
    )
    with open_rig(path, options) as rig:
        return _time(rig, lengths, rounds, measures)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Tokens of the sequence that is parked."""

    prompt: int
    reply: int


def _lengths(path: Path, rounds: int) -> _Lengths:
    window = inspect_model(path, path.stem).context_tokens
    reply = rounds * _TOKENS_A_ROUND
    prompt = min(_MOST_TOKENS, window - reply)
    if prompt < PAGE_TOKENS:
        raise ModelUnavailable(
            f"the model's window has {window} tokens, too few to measure {rounds} parks"
        )
    return _Lengths(prompt, reply)


def _options(options: LoadOptions, lengths: _Lengths) -> LoadOptions:
    """A pool for the sequence and its companion and no more: whoever comes in meanwhile takes the pages it left."""
    pool_tokens = lengths.prompt + lengths.reply + _COMPANION_TOKENS + PAGE_TOKENS
    return replace(
        options, pool_tokens=pool_tokens, parallel=3, preempt_ram_mib=-1, preempt_async=False
    )


def _time(rig: StepRig, lengths: _Lengths, rounds: int, measures: _Measures) -> ParkTimes:
    length, reply = lengths.prompt, lengths.reply
    seq = rig.add(length, reply, seed=0)
    parks: list[MoveTime] = []
    restores: list[MoveTime] = []
    for index in range(rounds):
        companion = _let_in_companion(rig)
        park = ParkNow(request_id=seq.request_id)
        parks.append(_move(rig, park, _Way(seq, SeqStatus.PARKED), measures))
        rig.end(companion)  # or the other prompt would be read in small steps beside it
        _overwrite(rig, length + reply - 1, seed=index + 2)
        companion = _let_in_companion(rig)
        resume = ResumeNext(request_id=seq.request_id)
        restores.append(_move(rig, resume, _Way(seq, SeqStatus.RUNNING), measures))
        rig.end(companion)
    return ParkTimes(length, rig.token_bytes, tuple(parks), tuple(restores))


def _let_in_companion(rig: StepRig) -> Sequence:
    """Somebody who goes on for the time of a park or a restore."""
    companion = rig.add(PAGE_TOKENS, _COMPANION_TOKENS - PAGE_TOKENS, seed=1)
    for _ in range(_MOST_STEPS):
        rig.step()
        if companion.is_generating:
            return companion
    raise AssertionError("a prompt is never read")


def _overwrite(rig: StepRig, num_tokens: int, *, seed: int) -> None:
    """Let another prompt take the pages that came free, or a copied park would find its own in the pool again."""
    other = rig.add(num_tokens, 1, seed=seed)
    for _ in range(_MOST_STEPS):
        rig.step()
        if other.has_ended:
            return
    raise AssertionError("a prompt is never read")


@dataclass(frozen=True, slots=True)
class _Way:
    """Who goes where."""

    seq: Sequence
    until: SeqStatus


def _move(rig: StepRig, command: ParkNow | ResumeNext, way: _Way, measures: _Measures) -> MoveTime:
    """Give the command and step until the sequence has arrived."""
    seconds, wall_bytes_s = measures.seconds, measures.wall_bytes_s()
    usual_s = statistics.median(seconds(one) for one in settled_decodes(rig, _USUAL_STEPS))
    rig.steer(command)
    total, num_copied = 0.0, 0
    for _ in range(_MOST_STEPS):
        step = rig.step()
        total += seconds(step) - usual_s
        num_copied += step.num_copied
        if way.seq.status is way.until:
            num_bytes = num_copied * rig.page_bytes
            wall_bytes_s = max(wall_bytes_s, measures.wall_bytes_s())
            return MoveTime(max(total, _LEAST_S), num_bytes, wall_bytes_s)
    raise AssertionError(f"{way.seq.request_id} is {way.seq.status}, and never {way.until}")
