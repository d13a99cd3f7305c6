"""Plays the world of a seed on the fake runner, with every promise checked in every step.

Requests and families come and go, chats take further turns, people park, call, pin and rank them, change policy and
budget; steps break, copies land late or fail. `play(seed)` raises AssertionError on the first broken promise and
otherwise tells what happened.
"""

from __future__ import annotations

from dataclasses import replace

from engine.api import FinishReason, Priority, Stay
from engine.core.parked import EndReason, Fate
from engine.core.types import IS_OUT, Family, SeqStatus, Sequence, SeqUpdate, StepBatch
from engine.core.victim_policies import VICTIM_POLICIES
from engine.errors import DeviceFailure
from engine.runs import (
    ParkNow,
    Pin,
    ResumeNext,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    SteeringCommand,
)
from fakes.builders import make_sequence
from fakes.fake_runner import VOCABULARY, salt_of, solo_reply
from fakes.promises import check_batch, check_end, check_reply, check_state, look
from fakes.worlds import Case, End, Told, World, make_world, random_budget

MOST_STEPS = 20_000


def play(seed: int, *, checked: bool = True) -> Told:
    """Play one workload to its end. Raises AssertionError, naming the seed, on a broken promise."""
    world = make_world(seed, checked=checked)
    try:
        while world.to_come or not world.scheduler.is_idle:
            _let_requests_come_and_go(world)
            if not world.scheduler.is_idle:
                _play_step(world)
        _land_copies(world, share=1.0)
        _give_back(world)
        check_end(world)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, step {world.told.steps}: {error}") from error
    counts = world.scheduler._yard.counts
    return replace(
        world.told,
        recomputes=counts.recomputes,
        rotations=counts.rotations,
        last_resorts=counts.last_resorts,
        copied_pages=world.copier.copied_pages,
    )


# --- requests


def _let_requests_come_and_go(world: World) -> None:
    random, scheduler = world.random, world.scheduler
    while world.to_come and (scheduler.is_idle or random.random() < world.arrives):
        world.to_come -= 1
        beginning = random.choice(world.beginnings)
        prompt = beginning[: random.randint(1, len(beginning))]
        tail = [random.randrange(3) for _ in range(random.randint(0, 6))]
        size = random.choice([*7 * [1], 2, 3])
        _submit(world, (prompt + tail)[: world.config.sequence_tokens], size)
    for seq in scheduler.live:
        if seq.is_staying and world.returns.random() < world.answers:
            _follow(world, seq)
        elif seq.is_staying and world.returns.random() < 0.01:
            _abort(world, seq)
    if scheduler.live and random.random() < 0.01:
        _abort(world, random.choice(scheduler.live))
    for status, probability in world.cuts.items():
        line = scheduler.line(status)
        if line and random.random() < probability:
            _abort(world, random.choice(line))
    if scheduler.live and random.random() < world.meddles:
        _meddle(world)


def _submit(world: World, prompt: list[int], size: int = 1) -> None:
    random = world.random
    ends = random.sample(range(VOCABULARY), random.choice([0, 0, 0, 2]))
    keep = random.choice(world.keeps) if size == 1 else None
    max_new = random.choice(world.reply_tokens if keep is None else [5, 20, 300, 600])
    priority = random.choice([*Priority, Priority.NORMAL, Priority.NORMAL])
    members = [
        make_sequence(
            prompt,
            arrival=world.arrivals + index,
            max_new=max_new,
            eos=ends[:1],
            priority=priority,
            arrival_s=world.now_s,
            keep_tokens=keep,
            max_wait_s=random.choice([*9 * [None], 0.0, 5.0, 50.0]),
        )
        for index in range(size)
    ]
    world.arrivals += size
    if size > 1:
        Family.unite(members)
        world.told.families += 1
    for seq in members:
        _expect(world, seq, ends)
    if size == 1 and world.returns.random() < 0.5:
        grace_s = world.returns.choice([0.0, 1.0, 10.0, 1000.0])
        members[0].stay = Stay(grace_s=grace_s, longest_s=world.returns.choice([0.5, 60, 2000]))
    if size == 1 and keep is None and world.returns.random() < 0.1:
        _come_back(world, world.cases[members[0].request_id])
        return
    for seq in members:
        world.scheduler.add(seq)


def _follow(world: World, old: Sequence) -> None:
    """Its owner answers: a request goes on from all it has said, or from a part of it."""
    dice, most = world.returns, world.config.sequence_tokens
    kept = dice.choice([len(old.token_ids), dice.randint(1, len(old.token_ids))])
    tail = [dice.randrange(VOCABULARY) for _ in range(dice.choice([1, 1, 3, 12]))]
    seq = make_sequence(
        (old.token_ids[:kept] + tail)[:most],
        arrival=world.arrivals,
        max_new=dice.choice([1, 5, 20]),
        priority=dice.choice([*Priority]),
        arrival_s=world.now_s,
        max_wait_s=dice.choice([*9 * [None], 0.0, 5.0]),
    )
    seq.stay = dice.choice([None, old.stay])
    world.arrivals += 1
    _expect(world, seq, [])
    world.told.kinds[f"followed {old.status.value}"] += 1
    was_kept = old.parked is not None and old.parked.fate is Fate.SWAP
    world.scheduler.follow(seq, old.request_id, world.now_s)
    world.told.followed_tokens += seq.num_computed
    world.told.kinds["followed, state kept outside"] += was_kept and seq.num_computed > 0
    world.cases[seq.request_id].seen = seq.status
    yard = world.scheduler._yard
    assert yard.lines.head(yard.rank_at(yard.step + 1)) is seq, f"{seq.request_id} is not the head"
    assert old.has_ended, f"{old.request_id} stays though it was followed"


def _come_back(world: World, case: Case) -> None:
    """It was parked in another life of the program, having said a part of its reply."""
    case.said = case.expected[: world.returns.randint(0, max(len(case.expected) - 1, 0))]
    case.seq.token_ids += case.said
    world.scheduler.adopt(case.seq, world.now_s)
    case.seen = case.seq.status


def _expect(world: World, seq: Sequence, ends: list[int]) -> None:
    expected, reason = solo_reply(
        seq.token_ids,
        max_new=seq.max_new_tokens,
        ends=ends,
        limit=world.config.sequence_tokens,
        keep=seq.keep_tokens,
        salt=salt_of(seq),
    )
    world.cases[seq.request_id] = Case(seq, frozenset(ends[1:]), expected, reason)
    world.told.sequences += 1


def _abort(world: World, seq: Sequence) -> None:
    case = world.cases[seq.request_id]
    world.told.kinds[f"aborted {seq.status.value}"] += 1
    was_staying = seq.is_staying
    assert world.scheduler.abort(seq.request_id, world.now_s) is seq
    if not was_staying:
        _break_off(case, FinishReason.ABORTED)


def _break_off(case: Case, end: End) -> None:
    assert case.end is None, f"{case.seq.request_id} ends twice: {case.end} and {end}"
    case.end, case.is_broken = end, True


# --- people


def _meddle(world: World) -> None:
    command = _random_command(world)
    world.told.kinds[f"command {type(command).__name__}"] += 1
    if isinstance(command, SetParkBudget):
        world.budget_bytes = command.budget_bytes
        world.may_be_ended |= command.budget_bytes == 0
    world.scheduler.steer(command, world.now_s)


def _random_command(world: World) -> SteeringCommand:
    random = world.random
    name = random.choice(world.scheduler.live).request_id
    return random.choice(
        [
            ParkNow(request_id=name),
            ParkNow(request_id=name),
            ResumeNext(request_id=name),
            ResumeNext(request_id=name),
            Pin(request_id=name),
            Pin(request_id=name, is_pinned=False),
            SetPriority(request_id=name, priority=random.choice([*Priority])),
            SetVictimPolicy(name=random.choice(sorted(VICTIM_POLICIES))),
            SetParkBudget(
                budget_bytes=random_budget(
                    random,
                    world.config.park.memory,
                    world.config.num_pages,
                    world.config.park.page_bytes,
                )
            ),
        ]
    )


# --- steps


def _play_step(world: World) -> None:
    told, scheduler, random = world.told, world.scheduler, world.random
    told.steps += 1
    staying = scheduler.line(SeqStatus.STAYING)
    world.now_s += world.step_s * random.uniform(0.5, 1.5)
    assert told.steps < MOST_STEPS, f"still alive: {[seq.request_id for seq in scheduler.live]}"
    _land_copies(world, share=0.3)
    before = look(world)
    batch = scheduler.schedule(world.now_s)
    check_batch(world, batch, before)
    told.kinds["room lent out"] += sum(seq.status in IS_OUT for seq in staying)
    _give_back(world)
    batch = _make_copies(world, batch)
    _note(world, batch)
    if random.random() < 0.003:
        batch = scheduler.last_resort(batch, world.now_s)
        world.may_be_ended = True
        _give_back(world)
        batch = _make_copies(world, batch)
        _note(world, batch)
    if batch.is_empty:
        _wait(world, batch)
    elif random.random() < 0.005:
        _break_down(world, batch)
    else:
        _compute(world, batch)
    _give_back(world)
    check_state(world)


def _note(world: World, batch: StepBatch) -> None:
    """Take note of who moved, and of who was ended."""
    told = world.told
    for seq in batch.parked:
        if seq.parked is not None:  # else from another life of the program, and back at once
            _note_park(world, seq)
    told.cached_tokens += sum(seq.num_cached for seq in batch.started)
    told.found_again_tokens += sum(seq.num_computed for seq in batch.restored)
    for end in batch.ended:
        told.kinds[f"ended: {end.reason.value}"] += 1
        _break_off(world.cases[end.seq.request_id], end.reason)


def _note_park(world: World, seq: Sequence) -> None:
    told, park = world.told, world.config.park
    assert seq.parked is not None
    told.parks += 1
    beside = " beside steps" if park.is_async else ""
    told.kinds[f"parked under {world.scheduler._yard.policy.name}"] += 1
    told.kinds[f"parked for {seq.parked.reason.cause.value}"] += 1
    told.kinds[f"parked at priority {Priority(seq.priority).name}"] += 1
    told.kinds[f"parked, memory {park.memory.value}{beside}"] += 1
    told.kinds["parked siblings"] += len(seq.party) > 1


def _make_copies(world: World, batch: StepBatch) -> StepBatch:
    """Carry out or start the copies of a batch; some fail."""
    for order in batch.copies:
        if world.random.random() < world.fails[order.way]:
            world.told.kinds[f"copy {order.way.value} failed"] += 1
            world.scheduler.copy_failed(order.copy_id, world.now_s)
            batch = batch.of_running()
        else:
            world.copier.issue(order)
    if batch.copies and world.random.random() < 0.05:
        world.scheduler.buffer_is_pageable(batch.copies[0].request_ids[0])
    return batch


def _land_copies(world: World, share: float) -> None:
    """Some of the copies under way land, or fail after all."""
    for copy_id, (order, _) in tuple(world.copier.under_way.items()):
        if world.random.random() >= share:
            continue
        if world.random.random() < world.fails[order.way]:
            world.copier.fail(copy_id)
            world.told.kinds[f"copy {order.way.value} failed"] += 1
            world.scheduler.copy_failed(copy_id, world.now_s)
        else:
            world.copier.land(copy_id)
            world.scheduler.copy_landed(copy_id, world.now_s)


def _give_back(world: World) -> None:
    released = world.scheduler.collect_released()
    world.told.released_pages += len(released.pages)
    world.runner.give_back(released)
    world.copier.give_back(released)


def _wait(world: World, batch: StepBatch) -> None:
    """Nothing to compute: a copy lands, time passes, or somebody lets go of whom he has parked."""
    scheduler = world.scheduler
    if batch.awaits_copies:
        _land_copies(world, share=0.9)
    elif batch.wake_s is not None:
        world.now_s = max(world.now_s, batch.wake_s)
    held = [seq for seq in scheduler.live if seq.is_held and not seq.is_staying]
    if held and not batch.awaits_copies:
        name = world.random.choice(held).request_id
        assert scheduler.steer(ResumeNext(request_id=name), world.now_s)


def _compute(world: World, batch: StepBatch) -> None:
    token_ids = world.runner.execute(batch)
    for update in world.scheduler.update(batch, token_ids, world.now_s):
        _hear(world, update)


def _hear(world: World, update: SeqUpdate) -> None:
    case, reason = world.cases[update.seq.request_id], update.finish
    if update.token_id is not None:
        case.said.append(update.token_id)
    world.told.shifts += update.seq.num_discarded > 0 and update.seq.num_computed == 0
    if update.token_id in case.stop_ids:  # as the runtime does for a stop string
        world.scheduler.finish(update.seq)
        reason = FinishReason.STOP
        world.told.stopped += 1
    if reason is not None:
        assert case.end is None, f"{update.seq.request_id} ends twice: {case.end} and {reason}"
        assert reason is case.reason, f"{update.seq.request_id} ended with {reason}"
        case.end = reason
        check_reply(case)
        _perhaps_next_turn(world, update.seq)


def _perhaps_next_turn(world: World, seq: Sequence) -> None:
    prompt = [*seq.token_ids, world.random.randrange(3)]
    fits = len(prompt) <= world.config.sequence_tokens
    if world.to_come and fits and world.random.random() < 0.4:
        world.to_come -= 1
        _submit(world, prompt)


def _break_down(world: World, batch: StepBatch) -> None:
    try:
        world.runner.break_down(batch)
    except DeviceFailure:
        failed = world.scheduler.fail(batch)
    assert failed == tuple(row.seq for row in batch.rows)
    for seq in failed:
        _break_off(world.cases[seq.request_id], EndReason.RESTORE_FAILED)
    world.told.failed += len(failed)
