"""The KV pool as numbers: which pages are free, who shares which, what may be given up. Holds no tensor.

Page numbers come from an *arena* of at least `num_pages`. At most `num_pages` of them are in the
*pool's account*; where the pool is host memory the others can be in the *parked account*:

    pool's account     in use      a table of somebody in the pool lists the page
                       stranded    only parked sequences list it, and the parked account is full
                       reusable    nobody lists it, but the prefix index knows its content
    parked account                 only parked sequences list it
    no account         vacant      content worthless; *warm* with memory behind it, *cold* without

What the account has left over, `num_pages` less the pages in it, is *free*: as many vacant pages
may be taken. Free and reusable pages together are *usable*. Owned by the Scheduler (engine thread).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.core.prefix_index import ROOT, PrefixIndex
from engine.runs import PoolUsage


class KVPool:
    """Counts uses of pages. Pages change hands only between steps."""

    def __init__(self, num_pages: int, page_tokens: int, arena_pages: int = 0) -> None:
        self.num_pages = num_pages
        self.page_tokens = page_tokens
        self.arena_pages = max(arena_pages, num_pages)
        self.parked_limit = self.arena_pages - num_pages
        """Most pages in the parked account."""
        self._warm: list[int] = []
        self._cold = list(range(self.arena_pages - 1, -1, -1))
        self._doubtful: list[int] = []
        """Pages made cold without anybody knowing whether they have memory; not all need be vacant still."""
        self._users = [0] * self.arena_pages
        """Uses by tables of sequences that own their pages, and by copies under way."""
        self._sleepers = [0] * self.arena_pages
        """Uses by tables of parked sequences."""
        self._parked: set[int] = set()
        self._stranded: dict[int, None] = {}
        self._num_used = 0
        self._prefix = PrefixIndex(page_tokens)

    # --- what is there

    @property
    def num_usable(self) -> int:
        """Pages that `take` can hand out."""
        return self.num_pages - self._num_used

    @property
    def num_parked(self) -> int:
        """Pages in the parked account."""
        return len(self._parked)

    @property
    def num_stranded(self) -> int:
        """Pages that only parked sequences list, and that are in the pool's account all the same."""
        return len(self._stranded)

    def is_stranded(self, page: int) -> bool:
        return page in self._stranded

    def pages_for(self, tokens: int) -> int:
        """Pages that hold `tokens` tokens."""
        return -(-tokens // self.page_tokens)

    def user_count(self, page: int) -> int:
        """How many tables of sequences in the pool, and copies under way, list `page`."""
        return self._users[page]

    def sleeper_count(self, page: int) -> int:
        """How many tables of parked sequences list `page`."""
        return self._sleepers[page]

    def pages_of_only(self, tables: Sequence[Sequence[int]], *, sleepers: bool) -> list[int]:
        """Pages that these tables list and nobody else in the pool does, each once, in order.

        `sleepers` tells whether pages that parked sequences list too are among them.
        """
        users, asleep = self._users, self._sleepers
        if len(tables) == 1:
            return [p for p in tables[0] if users[p] == 1 and (sleepers or not asleep[p])]
        uses = Counter(page for table in tables for page in table)
        return [p for p, n in uses.items() if users[p] == n and (sleepers or not asleep[p])]

    def find(self, token_ids: Sequence[int]) -> list[int]:
        """Pages that hold the longest known beginning of `token_ids`, which leave at least one token over."""
        return self._prefix.lookup(token_ids)

    def cost(self, pages: Iterable[int]) -> int:
        """Usable pages that `share` or `wake` would take: one for each page that is not in use."""
        return sum(not self._users[page] and page not in self._stranded for page in pages)

    # --- pages change hands

    def take(self, count: int) -> list[int] | None:
        """Hand out `count` pages of unknown content, free ones first, then the least recently used reusable ones.

        None, and nothing changed, if fewer are usable.
        """
        if count > self.num_usable:
            return None
        pages = [self._vacate() for _ in range(count)]
        for page in pages:
            self._users[page] = 1
        return pages

    def share(self, pages: Sequence[int]) -> None:
        """Add a user to pages that are known: in use, reusable, stranded or parked. See `cost`."""
        for page in pages:  # before one of them could be evicted to make room for another
            if not self._users[page] and not self._sleepers[page]:
                self._prefix.revive(page)
                self._num_used += 1
                self._users[page] = 1
            elif self._users[page]:
                self._users[page] += 1
        for page in pages:
            if not self._users[page]:
                self._enter_account(page)
                self._users[page] = 1

    def release(self, pages: Sequence[int]) -> None:
        """Remove a user from the pages of a table, given in logical order.

        A page without users becomes parked or stranded where parked sequences list it, and else
        reusable or free. Raises ValueError, with nothing changed after it, on a page without users.
        """
        for page in reversed(pages):  # children first: see PrefixIndex
            if self._users[page] == 0:
                raise ValueError(f"page {page} is released, but nobody uses it")
            self._users[page] -= 1
            if self._users[page] == 0:
                self._leave(page)

    def lay_down(self, pages: Sequence[int]) -> None:
        """Turn the uses of a table into uses of a parked one. What nobody else in the pool lists changes account."""
        for page in pages:
            self._sleepers[page] += 1
        self.release(pages)

    def wake(self, pages: Sequence[int]) -> None:
        """Turn the uses of a parked table into uses of one in the pool. See `cost`."""
        self._enter_all(pages)
        for page in pages:
            self._sleepers[page] -= 1

    def forget(self, pages: Sequence[int]) -> None:
        """Remove the uses of a parked table, given in logical order."""
        for page in reversed(pages):
            self._sleepers[page] -= 1
            if self._sleepers[page] or self._users[page]:
                continue
            if page in self._stranded:
                del self._stranded[page]
                self._leave(page)
            else:
                self._parked.remove(page)
                self._come_home(page)

    def hold(self, pages: Sequence[int]) -> None:
        """Add a user to pages in use: a copy under way, which `release` ends."""
        for page in pages:
            self._users[page] += 1

    def settle(self) -> None:
        """Move stranded pages to the parked account as far as it has room."""
        while self._stranded and len(self._parked) < self.parked_limit:
            page, _ = self._stranded.popitem()
            self._parked.add(page)
            self._num_used -= 1

    def publish(self, page_table: list[int], index: int, tokens: tuple[int, ...]) -> None:
        """Let others find `page_table[index]`, which now holds the computed `tokens`; those before it are published.

        If the same content is known already, the table is pointed to that page and its own copy
        freed: two sequences that computed the same page side by side end up sharing one. Exactness
        makes the two byte-identical.
        """
        own = page_table[index]
        parent = page_table[index - 1] if index else ROOT
        known = self._prefix.register(parent, tokens, own)
        if known != own:
            self.release([own])  # first: it makes the room that a parked page may need
            self.share([known])
            page_table[index] = known

    def take_back(self, pages: Sequence[int]) -> None:
        """Undo `take` for pages that have not been written to: there may be no memory behind them."""
        for page in pages:
            self._users[page] = 0
        self._num_used -= len(pages)
        self._cold += pages
        self._doubtful += pages

    def purge(self) -> int:
        """Forget every prefix that nobody uses; returns how many pages become free, with memory behind them."""
        count = self._prefix.num_reusable
        self._warm += [self._prefix.evict() for _ in range(count)]
        return count

    @property
    def num_warm(self) -> int:
        """Vacant pages with memory behind them; they are taken before cold ones."""
        return len(self._warm)

    @property
    def has_cold(self) -> bool:
        """Whether `collect_cold` may return anything."""
        return bool(self._doubtful) or len(self._warm) > self._num_free

    def collect_cold(self) -> tuple[int, ...]:
        """Vacant pages whose memory the pool's account no longer covers: it can be given back to the system."""
        surplus = max(len(self._warm) - self._num_free, 0)
        cold, self._warm = self._warm[:surplus], self._warm[surplus:]
        self._cold += cold
        if self._doubtful:
            cold = [*{*cold, *self._doubtful} & {*self._cold}]
            self._doubtful = []
        return tuple(cold)

    def usage(self) -> PoolUsage:
        """The pool's numbers; `page_bytes` is left 0, since only the runtime knows it."""
        return PoolUsage(
            total_pages=self.num_pages,
            free_pages=self._num_free,
            reusable_pages=self._prefix.num_reusable,
            page_tokens=self.page_tokens,
        )

    # --- how

    @property
    def _num_free(self) -> int:
        return self.num_pages - self._num_used - self._prefix.num_reusable

    def _vacate(self) -> int:
        """A page for new content, entered in the pool's account as in use."""
        if self._num_free > 0:
            page = self._warm.pop() if self._warm else self._cold.pop()
        else:
            page = self._prefix.evict()
        self._num_used += 1
        return page

    def _enter_account(self, page: int) -> None:
        """A page that only parked sequences list is about to be used in the pool."""
        if page in self._stranded:
            del self._stranded[page]
            return
        if self._num_free <= 0:
            self._warm.append(self._prefix.evict())
        self._parked.remove(page)
        self._num_used += 1

    def _enter_all(self, pages: Sequence[int]) -> None:
        for page in pages:
            if not self._users[page]:
                self._enter_account(page)
            self._users[page] += 1

    def _leave(self, page: int) -> None:
        """The last user in the pool has gone."""
        if self._sleepers[page]:
            if len(self._parked) < self.parked_limit:
                self._parked.add(page)
                self._num_used -= 1
            else:
                self._stranded[page] = None
            return
        self._num_used -= 1
        if page in self._prefix:
            self._prefix.retire(page)
        else:
            self._warm.append(page)

    def _come_home(self, page: int) -> None:
        """A page of the parked account that nobody lists any more: reusable if there is room for it."""
        if page not in self._prefix:
            self._warm.append(page)
        elif self._num_free > 0:
            self._prefix.retire(page)
        elif self._prefix.num_reusable:
            self._warm.append(self._prefix.evict())
            self._prefix.retire(page)
        else:  # then no page known is its child: whoever used one used this one too
            self._prefix.remove(page)
            self._warm.append(page)

    def check(self) -> None:
        """Recount everything. Raises AssertionError, with the numbers, on a page lost, doubled or wrongly indexed."""
        in_use = {page for page, count in enumerate(self._users) if count}
        asleep = {page for page, count in enumerate(self._sleepers) if count} - in_use
        vacant = set(self._warm) | set(self._cold)
        assert min(self._users) >= 0, f"negative number of users: {self._users}"
        assert min(self._sleepers) >= 0, f"negative number of sleepers: {self._sleepers}"
        assert len(vacant) == len(self._warm) + len(self._cold), f"free twice: {sorted(vacant)}"
        assert not vacant & (in_use | asleep), f"free, but in use: {sorted(vacant)}"
        assert not any(page in self._prefix for page in vacant), f"free, but indexed: {vacant}"
        assert asleep == self._parked | set(self._stranded), (
            f"asleep {asleep}, parked {self._parked}, stranded {set(self._stranded)}"
        )
        assert not self._parked & set(self._stranded), "parked and stranded at once"
        assert len(self._parked) <= self.parked_limit, f"{len(self._parked)} pages are parked"
        assert self._num_used == len(in_use) + len(self._stranded), (
            f"{self._num_used} counted as used, {len(in_use)} in use, {len(self._stranded)} stranded"
        )
        known = len(vacant) + self._prefix.num_reusable + len(in_use | asleep)
        assert known == self.arena_pages, (
            f"{len(vacant)} free + {self._prefix.num_reusable} reusable + {len(in_use | asleep)}"
            f" in use are not {self.arena_pages} pages"
        )
        assert self._num_free >= 0, f"the pool's account is {-self._num_free} pages over"
        uses = [
            users + sleepers for users, sleepers in zip(self._users, self._sleepers, strict=True)
        ]
        self._prefix.check(uses)
