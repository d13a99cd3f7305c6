"""Which pages hold which tokens, so that a prompt that begins like an earlier one is not computed twice.

A page is known by the page before it and its own tokens, both compared exactly: there are no hashes
to collide, and a hit is never false. Full pages only. Also keeps the order in which unused pages
are given up. Owned by KVPool (engine thread).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

ROOT = -1
"""Parent of a sequence's first page."""

PageKey = tuple[int, tuple[int, ...]]
"""(parent page, tokens). A parent stays indexed as long as its children, so its number means one content."""


class PrefixIndex:
    """A trie of full pages. Indexed pages that nobody uses are *reusable*, the least recently used first.

    Whoever uses a page uses its ancestors too, and pages fall unused children first
    (`KVPool.release`). So every reusable page stands before its parent in the order, and evicting
    from the front never cuts a chain.
    """

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._pages: dict[PageKey, int] = {}
        self._keys: dict[int, PageKey] = {}
        self._reusable: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, page: int) -> bool:
        return page in self._keys

    @property
    def num_reusable(self) -> int:
        return len(self._reusable)

    def lookup(self, token_ids: Sequence[int]) -> list[int]:
        """The longest run of indexed pages that `token_ids` begins with; always leaves at least one token over.

        Changes nothing: the caller must share the pages before anything else can be taken from the
        pool.
        """
        size = self._page_tokens
        pages: list[int] = []
        parent = ROOT
        for start in range(0, len(token_ids) - size, size):
            page = self._pages.get((parent, tuple(token_ids[start : start + size])))
            if page is None:
                break
            pages.append(page)
            parent = page
        return pages

    def register(self, parent: int, tokens: tuple[int, ...], page: int) -> int:
        """Index `page` as the child of `parent` that holds `tokens`; returns the page already known there, if any."""
        if len(tokens) != self._page_tokens:
            raise ValueError(
                f"page {page}: {len(tokens)} tokens, a full page has {self._page_tokens}"
            )
        known = self._pages.setdefault((parent, tokens), page)
        if known == page:
            self._keys[page] = (parent, tokens)
        return known

    def retire(self, page: int) -> None:
        """Nobody uses the indexed `page` any more: it becomes reusable, as the most recently used one."""
        self._reusable[page] = None

    def revive(self, page: int) -> None:
        """Somebody uses the reusable `page` again."""
        del self._reusable[page]

    def evict(self) -> int:
        """Forget the least recently used reusable page and return it. Raises KeyError if there is none."""
        page, _ = self._reusable.popitem(last=False)
        del self._pages[self._keys.pop(page)]
        return page

    def remove(self, page: int) -> None:
        """Forget a page that is neither used nor reusable, and of which no page that is known is a child."""
        del self._pages[self._keys.pop(page)]

    def check(self, ref_counts: Sequence[int]) -> None:
        """Recount. Raises AssertionError, with the numbers, where the index contradicts itself or `ref_counts`."""
        assert self._pages == {key: page for page, key in self._keys.items()}, "the two maps differ"
        unused = {page for page in self._keys if not ref_counts[page]}
        assert unused == set(self._reusable), f"unused {unused}, reusable {set(self._reusable)}"
        place = {page: index for index, page in enumerate(self._reusable)}
        for page, (parent, _) in self._keys.items():
            if parent == ROOT:
                continue
            assert parent in self._keys, f"page {page}: its parent {parent} is not indexed"
            if parent in place:
                assert page in place, f"page {page} is in use, its parent {parent} is not"
                assert place[page] < place[parent], f"page {page} would outlive its parent {parent}"
