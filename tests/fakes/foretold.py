"""Chats on a virtual clock, what each was told of its wait, and how long the wait came to be.

The real scheduler, priced by the cost model and measured by the real meter of speed, is asked about everybody outside
the pool as often as the engine lists requests. No dice but seeded ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from engine.core.config import ParkMemory, SchedulerConfig
from engine.core.cost_model import Calibration, CostModel
from engine.core.forecast import Forecaster, entry_of
from engine.core.parked import CopyWay, PageCopy
from engine.core.scheduler import Scheduler
from engine.core.types import SeqStatus, Sequence, StepBatch
from engine.runs import Pin, ResumeNext
from engine.runtime.rate_meter import RateMeter
from engine.sim.simulator import park_config
from fakes.builders import make_sequence

EOS, WORD, PAGE_TOKENS, EVERY_S, ENDS_AT_S = 0, 1, 32, 0.1, 400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats:
    """People who each ask a few times, one after the other. Ranges are of tokens, or of seconds."""

    pool_tokens: int
    people: int = 4
    seats: int = 4
    prompt: tuple[int, int] = (20, 60)
    reply: tuple[int, int] = (1500, 1500)
    """Tokens after which a reply ends, by itself unless it is limited; at the latest where the window does."""
    is_limited: bool = False
    """Whether replies end at their limits, which the scheduler knows."""
    turns: int = 4
    thinks_s: tuple[float, float] = (0.5, 5.0)
    calls_s: float = 0.0
    """Somebody who waits is let go first by hand about this often; 0: never."""
    slowness: float = 1.0
    """How many times as long steps take as on the machine of the calibration; every other 7 s half as long again."""
    memory: ParkMemory = ParkMemory.IN_PLACE
    priorities: tuple[int, ...] = (1,)
    pinned: int = 0
    """So many of the people pin their chats."""


@dataclass(slots=True)
class Wait:
    """One stretch outside the pool."""

    since_s: float
    told: list[tuple[float, float, float]] = field(default_factory=list)
    """When, and the soonest and latest moments that were told then."""
    called_s: float | None = None
    """When it was last let go first."""
    until_s: float | None = None


@dataclass(slots=True)
class _Asked:
    seq: Sequence
    person: int
    turn: int
    reply_tokens: int


class World:
    """One workload being played; `waits` are those that have ended and of which something was told."""

    def __init__(self, chats: Chats, seed: int) -> None:
        self._chats, self._random, self._now_s = chats, Random(seed), 0.0
        calibration = Calibration()
        park = park_config(
            chats.memory, calibration, page_tokens=PAGE_TOKENS, budget_tokens=100_000
        )
        num_pages = chats.pool_tokens // PAGE_TOKENS
        config = SchedulerConfig(
            num_pages=num_pages, page_tokens=PAGE_TOKENS, max_running=chats.seats, park=park
        )
        self._scheduler, self._cost = Scheduler(config), CostModel(calibration)
        self._meter, self._forecaster = RateMeter(), Forecaster()
        self._coming = [(2.0 * person, person, 0) for person in range(chats.people)]
        self._asked: dict[str, _Asked] = {}
        self._open: dict[str, Wait] = {}
        self._ended: list[Wait] = []
        self._call_s, self._listed_s = chats.calls_s, -EVERY_S

    @property
    def waits(self) -> list[Wait]:
        return [wait for wait in self._ended if wait.told]

    def play(self) -> None:
        """Until all have asked all, or the time is over."""
        while self._now_s < ENDS_AT_S and (self._coming or not self._scheduler.is_idle):
            if self._scheduler.is_idle:
                self._now_s = max(self._now_s, min(self._coming)[0])
            self._let_ask()
            self._let_call()
            self._step()

    # --- people

    def _let_ask(self) -> None:
        chats, dice = self._chats, self._random
        for one in sorted(self._coming):
            at_s, person, turn = one
            if at_s > self._now_s:
                return
            self._coming.remove(one)
            prompt, reply = dice.randint(*chats.prompt), dice.randint(*chats.reply)
            reply = min(reply, chats.pool_tokens - prompt)
            seq = make_sequence(
                prompt,
                arrival=len(self._asked),
                max_new=reply if chats.is_limited else chats.pool_tokens - prompt,
                eos=[EOS],
                arrival_s=self._now_s,
            )
            seq.priority = dice.choice(chats.priorities)
            self._scheduler.add(seq)
            self._asked[seq.request_id] = _Asked(seq, person, turn, reply)
            self._open[seq.request_id] = Wait(self._now_s)
            if person < chats.pinned:
                self._scheduler.steer(Pin(request_id=seq.request_id), self._now_s)

    def _let_call(self) -> None:
        if not self._chats.calls_s or self._now_s < self._call_s:
            return
        self._call_s = self._now_s + self._chats.calls_s * self._random.uniform(0.5, 1.5)
        outside = [
            *self._scheduler.line(SeqStatus.PARKED),
            *self._scheduler.line(SeqStatus.WAITING),
        ]
        if outside:
            name = self._random.choice(outside).request_id
            self._scheduler.steer(ResumeNext(request_id=name), self._now_s)
            self._open[name].called_s = self._now_s

    # --- steps

    def _step(self) -> None:
        scheduler = self._scheduler
        batch = scheduler.schedule(self._now_s)
        self._note_moves(batch)
        for order in batch.copies:
            self._now_s += self._copy_s(order)
        step_s = self._cost.step_s((row.start, row.count) for row in batch.rows)
        self._now_s += step_s * self._chats.slowness * (1.0 + 0.5 * (int(self._now_s / 7) % 2))
        if not batch.rows:
            self._now_s = max(self._now_s + 0.01, batch.wake_s or 0.0)
        tokens = [self._next_token(row.seq) for row in batch.sampling_rows]
        has_ended = False
        for update in scheduler.update(batch, tokens, self._now_s):
            if update.finish is not None:
                has_ended = True
                self._ask_again(self._asked[update.seq.request_id])
        scheduler.collect_released()
        if batch.rows:
            self._meter.add(self._now_s, len(tokens))
        has_news = has_ended or batch.started or batch.restored or batch.parked
        if has_news or self._now_s - self._listed_s >= EVERY_S:
            self._list()

    def _note_moves(self, batch: StepBatch) -> None:
        for seq in (*batch.started, *batch.restored):
            wait = self._open.pop(seq.request_id)
            wait.until_s = self._now_s
            self._ended.append(wait)
        for seq in batch.parked:
            self._open[seq.request_id] = Wait(self._now_s)

    def _list(self) -> None:
        """What the engine tells of everybody outside; see `engine.runtime.snapshots`."""
        self._listed_s, now_s = self._now_s, self._now_s
        scheduler, explainer = self._scheduler, self._scheduler.explain()
        self._forecaster.learn(scheduler.live, now_s)
        tokens_s = self._meter.rate(now_s) / max(scheduler.num_running, 1)
        for name, wait in self._open.items():
            seq = self._asked[name].seq
            outlook = explainer.outlook(seq)
            if outlook is None or not tokens_s:
                continue
            told = self._forecaster.tell(seq, entry_of(outlook, tokens_s=tokens_s), now_s)
            if told is not None:
                wait.told.append((now_s, now_s + told[0], now_s + told[1]))

    def _copy_s(self, order: PageCopy) -> float:
        tokens = len(order.pages) * PAGE_TOKENS
        price = self._cost.park_s if order.way is CopyWay.OUT else self._cost.restore_s
        return price(tokens, is_copied=True)

    def _next_token(self, seq: Sequence) -> int:
        is_last = seq.num_generated + 1 >= self._asked[seq.request_id].reply_tokens
        return EOS if is_last else WORD

    def _ask_again(self, asked: _Asked) -> None:
        if asked.turn + 1 < self._chats.turns:
            at_s = self._now_s + self._random.uniform(*self._chats.thinks_s)
            self._coming.append((at_s, asked.person, asked.turn + 1))


def waits_of(chats: Chats, *, seeds: int) -> list[Wait]:
    """All waits of so many plays."""
    waits = []
    for seed in range(seeds):
        world = World(chats, seed)
        world.play()
        waits += world.waits
    return waits
