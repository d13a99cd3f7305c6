"""Brings pages that were saved elsewhere into the pool as a prefix that nobody uses yet. Pure; engine thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.core.kv_pool import KVPool


def plant_prefix(
    pool: KVPool,
    token_ids: Sequence[int],
    num_pages: int,
    write: Callable[[list[int], int], object],
) -> int:
    """Let `token_ids` be found by their first `num_pages` full pages; returns how many of them are there now.

    What is known already is left as it is. `write(pages, first)` puts the content of pages `first`, `first + 1`, …
    of the sequence into the pool's `pages`; whatever it raises is passed on, with nothing changed. Nothing in use
    is touched: where the pool is too full, fewer pages come in.
    """
    size = pool.page_tokens
    if num_pages * size > len(token_ids):
        raise ValueError(f"{num_pages} full pages, but {len(token_ids)} tokens of {size} a page")
    table = pool.find(token_ids)[:num_pages]
    first = len(table)
    pool.share(table)
    added = pool.take(min(num_pages - first, pool.num_usable)) or []
    try:
        if added:
            write(added, first)
    except BaseException:
        pool.take_back(added)
        pool.release(table)
        raise
    table += added
    for index in range(first, len(table)):
        tokens = tuple(token_ids[index * size : (index + 1) * size])
        pool.publish(table, index, tokens)
    pool.release(table)
    return len(table)
