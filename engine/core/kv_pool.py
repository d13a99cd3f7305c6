"""The KV pool as numbers: which pages are free, who shares which, what may be given up. Holds no tensor.

A page is *free* (content worthless), *reusable* (nobody uses it, but the prefix index knows its
content) or *in use* (reference count above 0). Free and reusable pages together are *usable*. Owned
by the Scheduler (engine thread).
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.api import PoolUsage
from engine.core.prefix_index import ROOT, PrefixIndex


class KVPool:
    """Counts references to pages. Pages change hands only between steps."""

    def __init__(self, num_pages: int, page_tokens: int) -> None:
        self.num_pages = num_pages
        self.page_tokens = page_tokens
        self._free = list(range(num_pages - 1, -1, -1))
        self._ref_counts = [0] * num_pages
        self._prefix = PrefixIndex(page_tokens)

    @property
    def num_usable(self) -> int:
        """Pages that `take` can hand out."""
        return len(self._free) + self._prefix.num_reusable

    def pages_for(self, tokens: int) -> int:
        """Pages that hold `tokens` tokens."""
        return -(-tokens // self.page_tokens)

    def ref_count(self, page: int) -> int:
        """How many page tables list `page`."""
        return self._ref_counts[page]

    def take(self, count: int) -> list[int] | None:
        """Hand out `count` pages of unknown content, free ones first, then the least recently used reusable ones.

        None, and nothing changed, if fewer are usable.
        """
        if count > self.num_usable:
            return None
        pages = [self._free.pop() if self._free else self._prefix.evict() for _ in range(count)]
        for page in pages:
            self._ref_counts[page] = 1
        return pages

    def find(self, token_ids: Sequence[int]) -> list[int]:
        """Pages that hold the longest known beginning of `token_ids`, which leave at least one token over."""
        return self._prefix.lookup(token_ids)

    def share(self, pages: Sequence[int]) -> None:
        """Add a user to pages that are in use or reusable."""
        for page in pages:
            if self._ref_counts[page] == 0:
                self._prefix.revive(page)
            self._ref_counts[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """Remove a user from the pages of a table, given in logical order; what nobody uses becomes reusable or free.

        Raises ValueError, with nothing changed after it, on a page that nobody uses.
        """
        for page in reversed(pages):  # children first: see PrefixIndex
            if self._ref_counts[page] == 0:
                raise ValueError(f"page {page} is released, but nobody uses it")
            self._ref_counts[page] -= 1
            if self._ref_counts[page] == 0:
                if page in self._prefix:
                    self._prefix.retire(page)
                else:
                    self._free.append(page)

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
            self.share([known])
            self.release([own])
            page_table[index] = known

    def usage(self) -> PoolUsage:
        """The pool's numbers; `page_bytes` is left 0, since only the runtime knows it."""
        return PoolUsage(
            total_pages=self.num_pages,
            free_pages=len(self._free),
            reusable_pages=self._prefix.num_reusable,
            page_tokens=self.page_tokens,
        )

    def check(self) -> None:
        """Recount everything. Raises AssertionError, with the numbers, on a page lost, doubled or wrongly indexed."""
        free = set(self._free)
        in_use = sum(count > 0 for count in self._ref_counts)
        assert min(self._ref_counts) >= 0, f"negative reference count: {self._ref_counts}"
        assert len(free) == len(self._free), f"free twice: {sorted(self._free)}"
        assert not any(self._ref_counts[page] for page in free), f"free, but in use: {sorted(free)}"
        assert not any(page in self._prefix for page in free), f"free, but indexed: {sorted(free)}"
        assert len(free) + self._prefix.num_reusable + in_use == self.num_pages, (
            f"{len(free)} free + {self._prefix.num_reusable} reusable + {in_use} in use"
            f" are not {self.num_pages} pages"
        )
        self._prefix.check(self._ref_counts)
