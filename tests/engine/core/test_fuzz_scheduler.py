"""Random workloads: every reply equals the undisturbed one, every promise holds in every step, everything ends.

The second half breaks the core on purpose, one mistake at a time, and shows that the fuzz notices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict

import pytest

from engine.core.kv_pool import KVPool
from engine.core.prefix_index import PrefixIndex
from engine.core.scheduler import Scheduler
from engine.core.types import StepBatch
from fakes.workloads import play

WORLDS = 150
CHUNKS = 10
MUTANT_WORLDS = 300
FAILURES = (AssertionError, ValueError, KeyError)
"""What a broken core may end in: a broken promise, or one of its own checks."""


def play_all(seeds: Iterable[int], *, checked: bool) -> Counter[str]:
    """Play every seed; returns the sums of what they told."""
    total: Counter[str] = Counter()
    for seed in seeds:
        total.update(asdict(play(seed, checked=checked)))
    return total


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_reply_is_the_undisturbed_one(chunk: int) -> None:
    total = play_all(range(chunk * WORLDS, (chunk + 1) * WORLDS), checked=True)
    unreached = [name for name, count in total.items() if count < 20]
    assert not unreached, f"these workloads prove little about {unreached}: {total}"


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(10))
def test_every_reply_is_the_undisturbed_one_at_length(chunk: int) -> None:
    first = 100_000 + chunk * 2000
    play_all(range(first, first + 2000), checked=True)


# --- mistakes


def share_forgets_users(pool: KVPool, pages: list[int]) -> None:
    for page in pages:
        if pool._ref_counts[page] == 0:
            pool._prefix.revive(page)
            pool._ref_counts[page] = 1


def release_forgets_a_page(pool: KVPool, pages: list[int]) -> None:
    RELEASE(pool, pages[1:])


def release_ignores_other_users(pool: KVPool, pages: list[int]) -> None:
    for page in pages:
        pool._ref_counts[page] = min(pool._ref_counts[page], 1)
    RELEASE(pool, pages)


def release_parents_first(pool: KVPool, pages: list[int]) -> None:
    RELEASE(pool, pages[::-1])


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
        scheduler._end(seq)
    return batch


RELEASE, LOOKUP = KVPool.release, PrefixIndex.lookup
FAIL, SCHEDULE = Scheduler.fail, Scheduler.schedule

MISTAKES: list[tuple[type, str, Callable[..., object]]] = [
    (KVPool, "share", share_forgets_users),
    (KVPool, "release", release_forgets_a_page),
    (KVPool, "release", release_ignores_other_users),
    (KVPool, "release", release_parents_first),
    (PrefixIndex, "evict", evict_leaves_the_entry),
    (PrefixIndex, "lookup", lookup_ignores_what_stands_before),
    (PrefixIndex, "lookup", lookup_leaves_nothing_to_compute),
    (Scheduler, "fail", fail_publishes_what_the_step_wrote),
    (Scheduler, "schedule", schedule_forgets_the_parked),
]


@pytest.mark.parametrize("checked", [True, False], ids=["recounting", "by its results alone"])
@pytest.mark.parametrize(
    ("owner", "name", "mistake"), MISTAKES, ids=lambda v: getattr(v, "__name__", v)
)
def test_the_fuzz_notices(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    mistake: Callable[..., object],
    *,
    checked: bool,
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    with pytest.raises(FAILURES):
        play_all(range(MUTANT_WORLDS), checked=checked)
