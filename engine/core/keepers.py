"""How the state of a parked party is kept: the interface, and the keeper that copies nothing.

A keeper moves pages between a party's tables and wherever it keeps them, and settles nothing else:
statuses, reasons and counts are the Parking's. Engine thread; imports no tensor library, clock or
thread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from engine.core.config import SchedulerConfig
from engine.core.kv_pool import KVPool
from engine.core.parked import CopyWay, PageCopy, ParkedState
from engine.core.types import Party, Sequence


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy that has landed or failed: whose it was, and how they were parked when it was ordered."""

    way: CopyWay
    party: Party
    parked: tuple[ParkedState, ...]
    must_land: bool


class Keeper(Protocol):
    """`party` is in the pool for `can_keep`, `pages_freed` and `keep`, and kept for all others."""

    @property
    def used_bytes(self) -> int:
        """Bytes held outside the pool's account."""

    @property
    def is_over_budget(self) -> bool:
        """Whether kept states hold more than the budget, which has been lowered."""

    @property
    def holds_pages(self) -> bool:
        """Whether copies under way keep pages from being given to anybody."""

    @property
    def is_quiet(self) -> bool:
        """Whether no copy is ordered or under way, and no buffer waits to be given back."""

    @property
    def pages_coming(self) -> int:
        """Pages that come free when the copies under way have landed."""

    def can_keep(self, party: Party) -> bool:
        """Whether there is something to keep, and the budget holds it."""

    def pages_freed(self, party: Party) -> int:
        """Pages that the pool gains by `keep`, at the latest when a copy has landed."""

    def keep(self, party: Party) -> bool:
        """Move the party's own pages out. False: a copy is on its way, until it lands they are the party's."""

    def pages_to_return(self, party: Party) -> int:
        """Usable pages that `bring_back` takes, and what the party needs beyond them for tokens it has."""

    def bring_back(self, party: Party) -> bool:
        """Give the party its page tables again. False: a copy has yet to fill them."""

    def take_along(self, party: Party) -> bool:
        """Move out pages that were left behind because others in the pool used them. False: it cannot."""

    def hand_over(self, old: Sequence, new: Sequence, num_pages: int) -> None:
        """The first pages kept of one sequence are kept of another from now on; the others are forgotten."""

    def drop(self, party: Party) -> None:
        """Forget what is kept; afterwards the party holds nothing anywhere."""

    def end(self, seq: Sequence) -> None:
        """A sequence has ended and holds nothing: free what was kept ready for it."""

    def take_orders(self) -> tuple[PageCopy, ...]:
        """Copies that the next batch must carry, each named once."""

    def take_dropped(self) -> tuple[int, ...]:
        """Host buffers to be given back, each named once."""

    def land_step(self) -> None:
        """The step has run, and with it every copy that had to land before it."""

    def land(self, copy_id: int) -> Transfer | None:
        """A copy has been made; None if it is not under way."""

    def fail(self, copy_id: int) -> Transfer | None:
        """A copy could not be made. OUT: the party holds nothing any more; IN: it is kept as before."""

    def set_budget(self, budget_bytes: int) -> None:
        """Change the budget. What is kept already stays."""

    def pages_held(self) -> Counter[int]:
        """Pages that copies under way are users of, for recounting."""

    def check(self) -> None:
        """Raises AssertionError where its numbers contradict each other."""


class InPlaceKeeper:
    """The pool is host memory: pages of a parked party stay where they are and change accounts.

    With no page numbers beyond the pool's it keeps only what costs nothing, pages that others use.
    """

    holds_pages = False
    is_quiet = True
    pages_coming = 0

    def __init__(self, pool: KVPool, config: SchedulerConfig) -> None:
        self._pool = pool
        self._config = config
        self.set_budget(config.park.budget_bytes)

    @property
    def used_bytes(self) -> int:
        return self._pool.num_parked * self._config.park.page_bytes

    @property
    def is_over_budget(self) -> bool:
        return self._pool.num_parked > self._pool.parked_limit

    def can_keep(self, party: Party) -> bool:
        room = self._pool.parked_limit - self._pool.num_parked
        return any(seq.num_computed for seq in party) and self.pages_freed(party) <= room

    def pages_freed(self, party: Party) -> int:
        return len(self._pool.pages_of_only([seq.page_table for seq in party], sleepers=True))

    def keep(self, party: Party) -> bool:
        for seq in party:
            self._pool.lay_down(seq.page_table)
        return True

    def pages_to_return(self, party: Party) -> int:
        growth = sum(
            self._pool.pages_for(len(seq.token_ids)) - len(seq.page_table) for seq in party
        )
        return self._pool.cost({page for seq in party for page in seq.page_table}) + growth

    def bring_back(self, party: Party) -> bool:
        for seq in party:
            self._pool.wake(seq.page_table)
        return True

    def take_along(self, party: Party) -> bool:
        return False  # KVPool does it by itself, as soon as the parked account has room

    def hand_over(self, old: Sequence, new: Sequence, num_pages: int) -> None:
        new.page_table, left = old.page_table[:num_pages], old.page_table[num_pages:]
        self._pool.forget(left)
        old.page_table = []

    def drop(self, party: Party) -> None:
        for seq in party:
            self._pool.forget(seq.page_table)
            seq.page_table = []

    def end(self, seq: Sequence) -> None:
        pass  # nothing is kept ready for anybody

    def take_orders(self) -> tuple[PageCopy, ...]:
        return ()

    def take_dropped(self) -> tuple[int, ...]:
        return ()

    def land_step(self) -> None:
        self._pool.settle()

    def land(self, copy_id: int) -> Transfer | None:
        return None

    def fail(self, copy_id: int) -> Transfer | None:
        return None

    def set_budget(self, budget_bytes: int) -> None:
        room = self._pool.arena_pages - self._pool.num_pages
        self._pool.parked_limit = min(self._config.budget_pages(budget_bytes), room)

    def pages_held(self) -> Counter[int]:
        return Counter()

    def check(self) -> None:
        assert not self.is_over_budget, f"{self._pool.num_parked} pages are parked"
