"""Seeded random workloads for the scheduler, played on the fake runner with every promise checked in every step.

One seed is one world: a tiny pool, prompts that begin alike, chats with further turns, aborts, stop strings and device
failures. `play(seed)` raises AssertionError on the first broken promise and otherwise tells what happened.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from engine.api import FinishReason, Priority
from engine.core.config import SchedulerConfig
from engine.core.scheduler import Scheduler
from engine.core.types import LEGAL_MOVES, SeqStatus, Sequence, StepBatch
from engine.errors import DeviceFailure
from fakes.builders import make_sequence
from fakes.fake_runner import VOCABULARY, FakeRunner, solo_reply

MOST_STEPS = 5000


@dataclass(slots=True)
class Told:
    """What one workload did; sums of it show that the fuzz reached what it is meant to reach."""

    steps: int = 0
    sequences: int = 0
    parks: int = 0
    cached_tokens: int = 0
    found_again_tokens: int = 0
    aborted: int = 0
    stopped: int = 0
    failed: int = 0


@dataclass(slots=True)
class Case:
    """A sequence and what must become of it."""

    seq: Sequence
    stop_ids: frozenset[int]
    expected: list[int]
    reason: FinishReason
    seen: SeqStatus = SeqStatus.WAITING
    broken: bool = False
    """Aborted, or lost in a failed step: its tokens must be a beginning of `expected`."""


@dataclass(slots=True)
class World:
    """A workload being played."""

    random: Random
    config: SchedulerConfig
    scheduler: Scheduler
    runner: FakeRunner
    checked: bool
    """Whether the scheduler recounts in every step; without, only what the runner reads can show a mistake."""
    beginnings: list[list[int]]
    cases: dict[str, Case] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    to_come: int = 0


def play(seed: int, *, checked: bool = True) -> Told:
    """Play one workload to its end. Raises AssertionError, naming the seed, on a broken promise."""
    world = _make_world(seed, checked=checked)
    try:
        while world.to_come or not world.scheduler.is_idle:
            _let_requests_come_and_go(world)
            if not world.scheduler.is_idle:
                _play_step(world)
        _check_end(world)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, step {world.told.steps}: {error}") from error
    return world.told


def _make_world(seed: int, *, checked: bool) -> World:
    random = Random(seed)
    page_tokens = random.choice([1, 2, 3, 4, 8])
    num_pages = random.randint(2, 24)
    pool_tokens = num_pages * page_tokens
    config = SchedulerConfig(
        num_pages=num_pages,
        page_tokens=page_tokens,
        max_running=random.randint(1, 7),
        step_tokens=random.choice([1, 2, 3, 5, 8, 16, 64]),
        window_tokens=random.choice([0, 0, 0, random.randint(2, pool_tokens)]),
    )
    longest = min(config.sequence_tokens // 2 + 1, 40)
    beginnings = [[random.randrange(3) for _ in range(longest)] for _ in range(3)]
    world = World(random, config, Scheduler(config), FakeRunner(config), checked, beginnings)
    world.to_come = random.randint(3, 16)
    return world


def _let_requests_come_and_go(world: World) -> None:
    random, scheduler = world.random, world.scheduler
    while world.to_come and (scheduler.is_idle or random.random() < 0.4):
        world.to_come -= 1
        beginning = random.choice(world.beginnings)
        prompt = beginning[: random.randint(1, len(beginning))]
        tail = [random.randrange(3) for _ in range(random.randint(0, 6))]
        _submit(world, (prompt + tail)[: world.config.sequence_tokens])
    if scheduler.live and random.random() < 0.01:
        case = world.cases[random.choice(scheduler.live).request_id]
        assert scheduler.abort(case.seq.request_id, float(world.told.steps)) is case.seq
        case.broken = True
        world.told.aborted += 1


def _submit(world: World, prompt: list[int]) -> None:
    random, arrival = world.random, world.told.sequences
    ends = random.sample(range(VOCABULARY), random.choice([0, 0, 2]))
    seq = make_sequence(
        prompt,
        arrival=arrival,
        max_new=random.choice([0, 1, 5, 20, 40, 40, 1000]),
        eos=ends[:1],
        priority=random.choice([*Priority, Priority.NORMAL, Priority.NORMAL]),
    )
    expected, reason = solo_reply(
        prompt, max_new=seq.max_new_tokens, ends=ends, limit=world.config.sequence_tokens
    )
    world.cases[seq.request_id] = Case(seq, frozenset(ends[1:]), expected, reason)
    world.told.sequences += 1
    world.scheduler.add(seq)


def _play_step(world: World) -> None:
    told, scheduler = world.told, world.scheduler
    told.steps += 1
    assert told.steps < MOST_STEPS, f"still alive: {[seq.request_id for seq in scheduler.live]}"
    before = scheduler.line(SeqStatus.RUNNING)
    batch = scheduler.schedule(float(told.steps))
    _check_batch(world, batch, before)
    told.parks += len(batch.parked)
    told.cached_tokens += sum(seq.num_cached for seq in batch.started)
    told.found_again_tokens += sum(seq.num_computed for seq in batch.restored)
    if world.random.random() < 0.005:
        _break_down(world, batch)
    else:
        _compute(world, batch)
    _check_state(world)


def _compute(world: World, batch: StepBatch) -> None:
    token_ids = world.runner.execute(batch)
    for update in world.scheduler.update(batch, token_ids, float(world.told.steps)):
        case, reason = world.cases[update.seq.request_id], update.finish
        if update.token_id in case.stop_ids:  # as the runtime does for a stop string
            world.scheduler.finish(update.seq)
            reason = FinishReason.STOP
            world.told.stopped += 1
        if reason is not None:
            assert reason is case.reason, f"{update.seq.request_id} ended with {reason}"
            _check_reply(case)
            _perhaps_next_turn(world, update.seq)


def _perhaps_next_turn(world: World, seq: Sequence) -> None:
    prompt = [*seq.token_ids, world.random.randrange(3)]
    if (
        world.to_come
        and len(prompt) <= world.config.sequence_tokens
        and world.random.random() < 0.4
    ):
        world.to_come -= 1
        _submit(world, prompt)


def _break_down(world: World, batch: StepBatch) -> None:
    try:
        world.runner.break_down(batch)
    except DeviceFailure:
        failed = world.scheduler.fail(batch)
    assert failed == tuple(row.seq for row in batch.rows)
    for seq in failed:
        world.cases[seq.request_id].broken = True
    world.told.failed += len(failed)


def _check_batch(world: World, batch: StepBatch, before: tuple[Sequence, ...]) -> None:
    scheduler = world.scheduler
    assert not batch.is_empty, "an empty step while somebody is alive"
    assert batch.num_tokens <= world.config.step_tokens, f"{batch.num_tokens} tokens in a step"
    rows = Counter(row.seq.request_id for row in batch.rows)
    assert max(rows.values()) == 1, f"several rows: {rows}"
    assert all(row.count > 0 for row in batch.rows), "a row without tokens"
    running = scheduler.line(SeqStatus.RUNNING)
    assert running[0].request_id in rows, "the leader stands still"
    idle = [s.request_id for s in running if s.num_uncomputed == 1 and s.request_id not in rows]
    assert not idle or batch.parked, f"one token short, but not served: {idle}"
    if batch.parked:
        assert before[0] not in batch.parked, "the leader was parked"
        assert max(s.line_key for s in running) < min(s.line_key for s in batch.parked)
        assert not batch.started, "somebody entered in a step that parks"
        assert not batch.restored, "somebody returned in a step that parks"
    if batch.started:
        assert not scheduler.num_parked, "a newcomer passed a parked sequence"
    parked, waiting = scheduler.line(SeqStatus.PARKED), scheduler.line(SeqStatus.WAITING)
    for entered, left in ((batch.restored, parked), (batch.started, waiting)):
        assert not entered or not left or entered[-1].line_key < left[0].line_key, "passed in line"


def _check_state(world: World) -> None:
    if world.checked:
        world.scheduler.check()
    for case in world.cases.values():
        now = case.seq.status
        assert now is case.seen or now in _reachable(case.seen), f"{case.seen} became {now}"
        case.seen = now


def _reachable(status: SeqStatus) -> set[SeqStatus]:
    """Statuses that one step (plan, then result) can lead to."""
    once = set(LEGAL_MOVES[status])
    return once | {after for one in once for after in LEGAL_MOVES[one]}


def _check_reply(case: Case) -> None:
    reply = case.seq.token_ids[case.seq.num_prompt :]
    if case.broken:
        assert reply == case.expected[: len(reply)], f"{case.seq.request_id} said {reply}"
    else:
        assert reply == case.expected, f"{case.seq.request_id} said {reply}, alone {case.expected}"


def _check_end(world: World) -> None:
    for case in world.cases.values():
        assert case.seq.status is SeqStatus.FINISHED, f"{case.seq.request_id} never ended"
        _check_reply(case)
    usage = world.scheduler.pool.usage()
    assert usage.free_pages + usage.reusable_pages == usage.total_pages, f"pages lost: {usage}"
