"""What must hold in every step of a world. Each function raises AssertionError with what is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.core.config import GUARD_S, LONGEST_TURN, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.parked import CopyWay, EndReason
from engine.core.planner import keeps_room
from engine.core.types import (
    IS_OUT,
    LEGAL_MOVES,
    OWNS_PAGES,
    SeqEnd,
    SeqStatus,
    Sequence,
    StepBatch,
)
from engine.runs import ParkCause, WaitKind
from fakes.worlds import Case, Head, Leader, World

HEAD_WAITS_S = 65.0
"""Longest wait of a head of the line with nobody pinned: two classes of priority up, and a rotation."""


@dataclass(frozen=True, slots=True)
class Before:
    """The scheduler before a step was planned."""

    running: tuple[Sequence, ...]
    line: tuple[Sequence, ...]
    """Those who may enter, the head first."""
    leader: Sequence | None
    seatless_class: float
    """From which class on newcomers found no seat; one may have become free since."""
    called: frozenset[Sequence]
    """Those in the pool who were called by hand not long ago."""


def look(world: World) -> Before:
    """Remember what the promises about the next plan refer to."""
    yard = world.scheduler._yard
    yard.now_s = world.now_s
    parties = yard.running_parties()
    leader = min(parties, key=yard.policy.leader_key)[0] if parties else None
    line = tuple(yard.lines.outside(yard.rank_at(yard.step + 1)))
    seatless_class = yard.rank.seatless_class
    running = world.scheduler.line(SeqStatus.RUNNING)
    called = frozenset(seq for seq in running if keeps_room(seq.party, world.now_s))
    return Before(running, line, leader, seatless_class, called)


def check_batch(world: World, batch: StepBatch, before: Before) -> None:
    """The plan of a step keeps the rules of steps, of the line and of the leader."""
    assert batch.num_tokens <= world.config.step_tokens, f"{batch.num_tokens} tokens in a step"
    rows = Counter(row.seq.request_id for row in batch.rows)
    assert not rows or max(rows.values()) == 1, f"several rows: {rows}"
    assert all(row.count > 0 for row in batch.rows), "a row without tokens"
    assert all(row.seq.status is SeqStatus.RUNNING for row in batch.rows), "a row outside the pool"
    _check_progress(world, batch)
    _check_leader(batch, before)
    _check_staying(world, batch)
    _check_leader_advances(world, batch)
    if not batch.ended:  # an end changes who has a seat
        _check_line(world, before)
    _check_families(world)
    for end in batch.ended:
        _check_end(world, end)


def _check_progress(world: World, batch: StepBatch) -> None:
    """Somebody advances, and whoever needs one token gets it unless its page is still being copied out."""
    yard = world.scheduler._yard
    running = world.scheduler.line(SeqStatus.RUNNING)
    in_transfer = yard.keeper.holds_pages
    rows = {row.seq for row in batch.rows}
    if running and not in_transfer:
        assert rows, "somebody is in the pool and nobody advances"
        idle = [seq.request_id for seq in running if seq.num_uncomputed == 1 and seq not in rows]
        held = [seq for seq in running if seq.family is not None]
        assert not idle or held, f"one token short, but not served: {idle}"
    if not rows:
        alive = [(seq.request_id, seq.status.value) for seq in world.scheduler.live]
        held = all(seq.is_held for seq in world.scheduler.live)
        reasons = batch.awaits_copies or batch.wake_s is not None or batch.ended or batch.parked
        assert held or reasons, f"nothing moves: {alive}"
        assert not batch.awaits_copies or in_transfer, "it waits for copies that do not exist"


def _check_leader(batch: StepBatch, before: Before) -> None:
    """Ordinary parks spare the leader as long as anybody else may go."""
    for seq in batch.parked:
        if seq.parked is None:
            continue  # from another life of the program, and back at once
        if seq.parked.reason.cause is not ParkCause.PAGES_SHORT:
            continue
        if seq is before.leader:
            others = [one for one in before.running if one.family is None or one not in seq.party]
            spared = [one for one in others if one.is_pinned or one in before.called]
            assert len(spared) == len(others) - 1 or spared, f"the leader {seq.request_id} left"
        if seq.is_pinned:
            stays = [one for one in before.running if one.status is SeqStatus.RUNNING]
            loose = [one.request_id for one in stays if not any(m.is_pinned for m in one.party)]
            assert not loose, f"{seq.request_id} is pinned and left, {loose} stayed"


def _check_staying(world: World, batch: StepBatch) -> None:
    """Nobody is parked for a step while somebody who has ended still holds room, and nobody who has ended runs."""
    causes = {seq.parked.reason.cause for seq in batch.parked if seq.parked is not None}
    staying = world.scheduler.line(SeqStatus.STAYING)
    assert ParkCause.PAGES_SHORT not in causes or not staying, f"{staying} kept their room"
    assert not any(row.seq.is_staying for row in batch.rows), "one that has ended is in a step"


def _check_leader_advances(world: World, batch: StepBatch) -> None:
    """The leader computes something in every step but for the prompts before it, and copies that hold its pages."""
    scheduler = world.scheduler
    leader = min(
        scheduler._yard.running_parties(), key=scheduler._yard.policy.leader_key, default=None
    )
    shifts_always = world.config.sequence_tokens < 4  # then a prompt before it is always there
    if leader is None or batch.is_empty or shifts_always:
        world.leader = None
        return
    advances = any(row.seq in leader for row in batch.rows)
    if advances or world.leader is None or world.leader.seq is not leader[0]:
        world.leader = Leader(leader[0], world.told.steps)
    steps = world.told.steps - world.leader.step
    most = _reading_steps(world.config) + _copying_steps(world.config)
    assert steps <= most, f"{leader[0].request_id} idles for {steps} steps"


def _reading_steps(config: SchedulerConfig) -> int:
    """Steps in which the prompts of everybody in the pool are read."""
    return -(-config.sequence_tokens * config.seats // config.step_tokens)


def _copying_steps(config: SchedulerConfig) -> int:
    """Steps in which a copy that runs beside them has landed, all but certainly."""
    return 30 * config.park.is_async


def _check_line(world: World, before: Before) -> None:
    """Nobody who was in line has been passed by somebody behind it."""
    if world.config.park.resume_order is ResumeOrder.PASS:
        return
    yard = world.scheduler._yard
    left_out: list[Sequence] = []
    for seq in before.line:
        was_parked_before = seq.parked is not None and seq.parked.step < yard.step
        if seq.status is SeqStatus.WAITING:
            left_out += [seq] if seq.priority < yard.rank.seatless_class else []
        elif seq.status is SeqStatus.PARKED:
            left_out += [seq] if was_parked_before else []
        elif seq.status in (SeqStatus.RUNNING, SeqStatus.RESTORING):
            passed = [one.request_id for one in left_out if one.family is None]
            found_one = seq.num_parks == 0 and seq.priority >= before.seatless_class
            may = not passed or found_one or seq.family is not None
            assert may, f"{seq.request_id} passed {passed}"


def _check_families(world: World) -> None:
    """Siblings that have started are in the pool or out of it together."""
    for case in world.cases.values():
        family = case.seq.family
        if family is None:
            continue
        seen = {seq.status for seq in family.members} - {SeqStatus.WAITING, SeqStatus.FINISHED}
        assert len(seen) <= 1, f"{case.seq.request_id}: parked in part: {seen}"


def _check_end(world: World, end: SeqEnd) -> None:
    """The scheduler ends a sequence only for the reasons it may have."""
    seq = end.seq
    if end.reason is EndReason.POOL_FULL:
        assert seq.family is not None or world.may_be_ended, f"{seq.request_id} was ended"
    elif end.reason is EndReason.OUTGREW_POOL:
        assert seq.family is not None, f"{seq.request_id} fits the pool and was ended"
    elif end.reason is EndReason.WAITED_TOO_LONG:
        assert seq.max_wait_s is not None
        assert end.waited_s >= seq.max_wait_s - 1e-6, f"{seq.request_id} would have waited"
    else:
        assert world.fails[CopyWay.IN], f"{seq.request_id}: no copy ever failed"


def check_state(world: World) -> None:
    """Between steps: accounts, memory, legal moves, bounded waits."""
    if world.checked:
        world.scheduler.check()
        _check_picture(world)
    _check_memory(world)
    for case in world.cases.values():
        now = case.seq.status
        assert now in _reachable(case.seen), f"{case.seen} became {now}"
        case.seen = now
    _check_waits(world)


def _check_picture(world: World) -> None:
    """Every page of the pool is told with exactly those who list it."""
    owners: dict[int, set[str]] = {}
    for seq in world.scheduler.live:
        if seq.status in OWNS_PAGES:
            for page in seq.page_table:
                owners.setdefault(page, set()).add(seq.request_id)
    listed = Counter(frozenset(ids) for ids in owners.values())
    told: Counter[frozenset[str]] = Counter()
    for one in world.scheduler.explain().holdings():
        told[frozenset(one.request_ids)] += one.pages
    assert told == listed, f"told {told}, listed {listed}"


def _check_memory(world: World) -> None:
    """Never more memory than the pool and the budget allow."""
    pool, usage = world.scheduler.pool, world.scheduler.park_usage()
    limit = pool.num_pages + pool.num_parked
    assert len(world.runner.committed) <= limit, f"{len(world.runner.committed)} pages committed"
    if world.config.park.memory is ParkMemory.IN_PLACE:
        assert world.budget_bytes < 0 or usage.used_bytes <= world.budget_bytes, f"{usage}"
    if world.config.park.memory is ParkMemory.COPIED and world.budget_bytes >= 0:
        is_moving = any(seq.status in IS_OUT - {SeqStatus.PARKED} for seq in world.scheduler.live)
        is_moving |= bool(world.copier.under_way)
        assert is_moving or usage.used_bytes <= world.budget_bytes, f"{usage}"


def _reachable(status: SeqStatus) -> set[SeqStatus]:
    """Statuses that one step (copies, plan, then result) can lead to."""
    found = {status}
    for _ in range(3):
        found |= {after for one in found for after in LEGAL_MOVES[one]}
    return found


def _check_waits(world: World) -> None:
    """The head of the line does not wait for ever, whatever the others do."""
    yard = world.scheduler._yard
    line = yard.lines.outside(yard.rank_at(yard.step + 1))
    line = [seq for seq in line if seq.family is None or not seq.family.is_running]
    head = line[0] if line else None
    longest = _longest_wait(world, head) if head is not None else None
    if head is None or longest is None:
        world.head = None
        return
    if world.head is None or (world.head.seq, world.head.longest) != (head, longest):
        world.head = Head(head, longest, world.now_s, world.told.steps)
    waited = (world.now_s - world.head.since_s, world.told.steps - world.head.since_step)
    if waited[0] > longest[0] and waited[1] > longest[1]:
        raise AssertionError(
            f"{head.request_id} has been the head for {waited[0]:.1f} s and {waited[1]} steps, "
            f"longest is {longest}: {world.scheduler.admission}"
        )


def _longest_wait(world: World, head: Sequence) -> tuple[float, int] | None:
    """Seconds and steps after which the head must be in as things are now; None where nothing bounds it.

    Where states can always be kept and nobody in the pool matters more it is the wait for a
    rotation and the time that is left to those who have just come back; else also the classes of
    priority that it has to climb, and the wait for a rotation by recompute. Prompts are read first.
    """
    config, scheduler = world.config, world.scheduler
    admission, rank = scheduler.admission, scheduler._yard.rank
    if (
        world.budget_bytes == 0
        or (config.park.memory is ParkMemory.COPIED and any(world.fails.values()))
        or config.park.resume_order is ResumeOrder.PASS
        or any(seq.is_pinned for seq in scheduler.live)
        or admission is None
        or (head.status is SeqStatus.WAITING and admission.waits_for is WaitKind.NO_SEAT)
    ):
        return None
    is_easy = (
        _holds_everybody(world)
        and not any(seq.is_staying for seq in scheduler.live)
        and not any(keeps_room((seq,), world.now_s) for seq in scheduler.live)
        and not config.knobs.granularity_tokens
        and admission.waits_for is WaitKind.NO_ROOM
        and all(seq.priority >= rank.priority(head) for seq in scheduler.line(SeqStatus.RUNNING))
    )
    if not is_easy:
        return HEAD_WAITS_S, 200 + 4 * config.seats * config.sequence_tokens
    reading = _reading_steps(config)
    copying = _copying_steps(config)
    turns = min(max(head.num_parks, 1), LONGEST_TURN)
    seconds = turns * config.park.rotate_after_s + 2 * GUARD_S + (2 + copying) * world.step_s
    return seconds, 10 + reading + copying


def _holds_everybody(world: World) -> bool:
    """Whether the budget never keeps anybody in the pool."""
    config, budget = world.config, world.budget_bytes
    if config.park.memory is ParkMemory.IN_PLACE:
        held = sum(len(seq.page_table) + 1 for seq in world.scheduler.live)
        return config.budget_pages(budget) >= max(2 * config.num_pages, held)
    if config.park.memory is ParkMemory.COPIED:
        return budget < 0 or budget >= 8 * config.num_pages * config.park.page_bytes
    return False


def check_reply(case: Case) -> None:
    """It said what it says alone, or a beginning of that if it was cut off."""
    if case.is_broken:
        assert case.said == case.expected[: len(case.said)], f"{case.seq.request_id}: {case.said}"
    else:
        assert case.said == case.expected, f"{case.seq.request_id}: {case.said}, {case.expected}"


def check_end(world: World) -> None:
    """Everything has ended once, and nothing is held any more."""
    for case in world.cases.values():
        assert case.seq.status is SeqStatus.FINISHED, f"{case.seq.request_id} never ended"
        assert case.end is not None, f"{case.seq.request_id} ended without an end"
        assert case.seq.parked is None
        check_reply(case)
    pool = world.scheduler.pool
    usage = pool.usage()
    assert usage.free_pages + usage.reusable_pages == usage.total_pages, f"pages lost: {usage}"
    assert pool.num_parked == pool.num_stranded == 0, "parked pages left"
    assert world.scheduler.park_usage().used_bytes == 0, f"{world.scheduler.park_usage()}"
    assert not world.copier.buffers, f"host buffers left: {list(world.copier.buffers)}"
    counts = world.scheduler.park_usage()
    assert counts.num_resumes <= counts.num_parks, f"{counts}"
