"""Random workloads: every reply equals the undisturbed one, every promise holds in every step, everything ends.

The second half breaks the core on purpose, one mistake at a time, and shows that the fuzz notices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import ModuleType

import pytest

from engine.core import entrance, pressure, stays
from engine.core.admission import Admission
from engine.core.copy_keeper import CopyKeeper
from engine.core.host_pool import HostPool
from engine.core.kv_pool import KVPool
from engine.core.lines import Lines, Rank
from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.core.parking import Parking
from engine.core.patience import Patience
from engine.core.prefix_index import PrefixIndex
from engine.core.scheduler import Scheduler
from engine.core.types import Party, SeqStatus, Sequence, StepBatch
from engine.core.victim_policies import Candidate
from fakes.workloads import play

WORLDS = 100
CHUNKS = 5
FULL_WORLDS = 500
FULL_STEPS = 100_000
MUTANT_SEEDS = range(14, 414)
"""The first of these have residents that stay long, which few worlds have."""
RARE = (
    "aborted parking", "aborted restoring", "copy out failed", "copy in failed",
    "ended: restore_failed", "parked for last_resort", "followed parking",
)  # fmt: skip
"""What only the full run reaches for certain."""
FAILURES = (AssertionError, ValueError, KeyError, IndexError)
"""What a broken core may end in: a broken promise, or one of its own checks."""


def play_all(seeds: Iterable[int], *, checked: bool) -> Counter[str]:
    """Play every seed; returns the sums of what they told."""
    total: Counter[str] = Counter()
    for seed in seeds:
        total.update(play(seed, checked=checked).counts())
    return total


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_reply_is_the_undisturbed_one(chunk: int) -> None:
    total = play_all(range(chunk * WORLDS, (chunk + 1) * WORLDS), checked=True)
    unreached = [name for name, count in total.items() if not count and name not in RARE]
    assert not unreached, f"these workloads prove nothing about {unreached}: {total}"


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("chunk", range(5))
def test_every_reply_is_the_undisturbed_one_in_half_a_million_steps(chunk: int) -> None:
    first = 100_000 + chunk * FULL_WORLDS
    total = play_all(range(first, first + FULL_WORLDS), checked=True)
    assert total["steps"] >= FULL_STEPS
    assert total["aborted parking"] + total["aborted restoring"] >= 30
    unreached = [name for name, count in total.items() if count < 3]
    assert not unreached, f"these workloads prove little about {unreached}: {total}"


# --- mistakes


def share_forgets_users(pool: KVPool, pages: list[int]) -> None:
    SHARE(pool, [page for page in pages if not pool._users[page]])


def release_forgets_a_page(pool: KVPool, pages: list[int]) -> None:
    RELEASE(pool, pages[1:])


def release_ignores_other_users(pool: KVPool, pages: list[int]) -> None:
    for page in pages:
        pool._users[page] = min(pool._users[page], 1)
    RELEASE(pool, pages)


def release_parents_first(pool: KVPool, pages: list[int]) -> None:
    RELEASE(pool, pages[::-1])


def wake_forgets_the_account(pool: KVPool, pages: list[int]) -> None:
    for page in pages:
        pool._sleepers[page] -= 1
        pool._users[page] += 1


def lay_down_gives_parked_pages_away(pool: KVPool, pages: list[int]) -> None:
    LAY_DOWN(pool, pages)
    pool._warm += [page for page in pages if page in pool._parked]


def forget_leaves_a_page_behind(pool: KVPool, pages: list[int]) -> None:
    FORGET(pool, pages[:-1])


def collect_takes_memory_of_the_parked(pool: KVPool) -> tuple[int, ...]:
    return (*COLLECT(pool), *pool._parked)


def evict_leaves_the_entry(index: PrefixIndex) -> int:
    return index._reusable.popitem(last=False)[0]


def lookup_ignores_what_stands_before(index: PrefixIndex, token_ids: list[int]) -> list[int]:
    by_tokens = {tokens: page for (_, tokens), page in index._pages.items()}
    size, pages = index._page_tokens, []
    for start in range(0, len(token_ids) - size, size):
        page = by_tokens.get(tuple(token_ids[start : start + size]))
        if page is None:
            break
        pages.append(page)
    return pages


def lookup_leaves_nothing_to_compute(index: PrefixIndex, token_ids: list[int]) -> list[int]:
    return LOOKUP(index, [*token_ids, -1])


def fail_publishes_what_the_step_wrote(scheduler: Scheduler, batch: StepBatch) -> object:
    failed = tuple(row.seq for row in batch.rows)
    for row in batch.rows:
        scheduler._advance(row, None, 0.0)
    FAIL(scheduler, batch)
    return failed


def schedule_forgets_the_parked(scheduler: Scheduler, now_s: float) -> StepBatch:
    batch = SCHEDULE(scheduler, now_s)
    for seq in batch.parked:
        scheduler._parking.end(seq)
    return batch


def keep_frees_pages_before_they_are_copied(keeper: CopyKeeper, party: Party) -> bool:
    pages = keeper._own_pages(party)
    is_kept = KEEP(keeper, party)
    if not is_kept:
        (order,) = keeper._orders[-1:]
        keeper._pool.release([page for page in order.pages if page in pages])
        keeper._flights[order.copy_id] = replace(keeper._flights[order.copy_id], held=())
    return is_kept


def bring_back_does_not_wait_for_the_copy(keeper: CopyKeeper, party: Party) -> bool:
    BRING_BACK(keeper, party)
    return True


def bring_back_orders_no_copy(keeper: CopyKeeper, party: Party) -> bool:
    is_back = BRING_BACK(keeper, party)
    if keeper._orders and keeper._orders[-1].way is CopyWay.IN and is_back:
        keeper._orders.pop()
    return is_back


def orders_mix_up_slots(keeper: CopyKeeper) -> tuple[PageCopy, ...]:
    return tuple(replace(order, saved=order.saved[::-1]) for order in TAKE_ORDERS(keeper))


def move_out_leaves_the_shared_beginning_in_use(
    keeper: CopyKeeper, party: Party, places: dict[int, SavedPage]
) -> None:
    for seq in party:
        cut = next((i for i, page in enumerate(seq.page_table) if page in places), None)
        table, seq.page_table = seq.page_table, seq.page_table[:cut]
        seq.saved = [places[page] for page in table[len(seq.page_table) :]]
        keeper._pool.release(table)


def a_failed_copy_is_taken_for_done(keeper: CopyKeeper, copy_id: int) -> object:
    return keeper.land(copy_id)


def reserve_ignores_the_budget(
    host: HostPool, num_bytes: int, buffer_id: int | None = None
) -> object:
    budget, host.budget_bytes = host.budget_bytes, -1
    found = RESERVE(host, num_bytes, buffer_id)
    host.budget_bytes = budget
    return found


def end_forgets_what_is_kept(parking: Parking, seq: Sequence) -> None:
    if seq.status is SeqStatus.PARKED:
        seq.parked = None
    END(parking, seq)


def park_loses_the_last_token(parking: Parking, party: Party, *args: object) -> None:
    for seq in party:
        if seq.num_generated and len(seq.token_ids) > seq.num_computed:
            seq.token_ids.pop()
    PARK(parking, party, *args)


def a_return_begins_a_token_late(parking: Parking, seq: Sequence) -> None:
    START(parking, seq)
    seq.num_computed += 1


def parties_are_sequences(seq: Sequence) -> Party:
    return (seq,)


def the_last_in_line_is_the_head(lines: Lines, rank: Rank) -> Sequence | None:
    outside = lines.outside(rank)
    return outside[-1] if outside else None


def everybody_fits(need: int, **_: int) -> Admission:
    return Admission(None, need, need)


def the_leader_goes_first(
    candidates: list[Candidate], leader: Party, *_: object
) -> Candidate | None:
    return next((c for c in candidates[:2] if len(candidates) > 1), None)


def nobody_ever_gives_way(*_: object) -> None:
    return None


def the_impatient_end_a_second_early(patience: Patience, seq: Sequence) -> float:
    return DEADLINE(patience, seq) - 1.0


def a_follower_takes_over_too_much(one: list[int], other: list[int]) -> int:
    return min(len(one), len(other))


def a_follower_leaves_pages_behind(
    keeper: CopyKeeper, old: Sequence, new: Sequence, num_pages: int
) -> None:
    old.page_table = old.page_table[:num_pages]
    HAND_OVER(keeper, old, new, num_pages)


def whoever_stays_is_never_lent_out(*_: object, **__: object) -> bool:
    return False


SHARE, RELEASE, LAY_DOWN = KVPool.share, KVPool.release, KVPool.lay_down
FORGET, COLLECT, LOOKUP = KVPool.forget, KVPool.collect_cold, PrefixIndex.lookup
FAIL, SCHEDULE = Scheduler.fail, Scheduler.schedule
KEEP, BRING_BACK, TAKE_ORDERS = CopyKeeper.keep, CopyKeeper.bring_back, CopyKeeper.take_orders
END, PARK, START = Parking.end, Parking.park, Parking._start_from_prefix
RESERVE, DEADLINE = HostPool.reserve, Patience._deadline_s
HAND_OVER = CopyKeeper.hand_over

MISTAKES: list[tuple[type | ModuleType, str, Callable[..., object]]] = [
    (KVPool, "share", share_forgets_users),
    (KVPool, "release", release_forgets_a_page),
    (KVPool, "release", release_ignores_other_users),
    (KVPool, "release", release_parents_first),
    (KVPool, "wake", wake_forgets_the_account),
    (KVPool, "lay_down", lay_down_gives_parked_pages_away),
    (KVPool, "forget", forget_leaves_a_page_behind),
    (KVPool, "collect_cold", collect_takes_memory_of_the_parked),
    (PrefixIndex, "evict", evict_leaves_the_entry),
    (PrefixIndex, "lookup", lookup_ignores_what_stands_before),
    (PrefixIndex, "lookup", lookup_leaves_nothing_to_compute),
    (Scheduler, "fail", fail_publishes_what_the_step_wrote),
    (Scheduler, "schedule", schedule_forgets_the_parked),
    (CopyKeeper, "keep", keep_frees_pages_before_they_are_copied),
    (CopyKeeper, "bring_back", bring_back_does_not_wait_for_the_copy),
    (CopyKeeper, "bring_back", bring_back_orders_no_copy),
    (CopyKeeper, "take_orders", orders_mix_up_slots),
    (CopyKeeper, "_move_out", move_out_leaves_the_shared_beginning_in_use),
    (CopyKeeper, "fail", a_failed_copy_is_taken_for_done),
    (HostPool, "reserve", reserve_ignores_the_budget),
    (Parking, "end", end_forgets_what_is_kept),
    (Parking, "park", park_loses_the_last_token),
    (Parking, "_start_from_prefix", a_return_begins_a_token_late),
    (Sequence, "party", property(parties_are_sequences)),
    (Lines, "head", the_last_in_line_is_the_head),
    (entrance, "may_hold", everybody_fits),
    (entrance, "choose_rotation", nobody_ever_gives_way),
    (pressure, "choose_victim", the_leader_goes_first),
    (Patience, "_deadline_s", the_impatient_end_a_second_early),
    (stays, "_num_agreed", a_follower_takes_over_too_much),
    (CopyKeeper, "hand_over", a_follower_leaves_pages_behind),
    (Parking, "lend", whoever_stays_is_never_lent_out),
]


@pytest.mark.parametrize(
    "checked",
    [
        pytest.param(True, marks=pytest.mark.full, id="recounting"),
        pytest.param(False, id="results"),
    ],
)
@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    MISTAKES,
    ids=[getattr(mistake, "__name__", name) for _, name, mistake in MISTAKES],
)
def test_the_fuzz_notices(
    monkeypatch: pytest.MonkeyPatch,
    owner: type | ModuleType,
    name: str,
    mistake: Callable[..., object],
    *,
    checked: bool,
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    with pytest.raises(FAILURES):
        play_all(MUTANT_SEEDS, checked=checked)
