"""How siblings (n > 1) share the pages of their common prompt. Pure; asked by the Scheduler in every step.

One of them computes the prompt at a time; the others hold their seats without pages until they
find its pages in the prefix index, and compute from there on by themselves.
"""

from __future__ import annotations

from engine.core.kv_pool import KVPool
from engine.core.types import SeqStatus, Sequence


def shared_pages(seq: Sequence, page_tokens: int) -> int:
    """Full pages of the prompt that siblings can share; always leaves each a token to compute."""
    if seq.family is None:
        return 0
    return (seq.num_prompt - 1) // page_tokens


def is_held_back(seq: Sequence, page_tokens: int) -> bool:
    """Whether a sibling before it in line is computing what both need."""
    if seq.family is None:
        return False
    shared_tokens = shared_pages(seq, page_tokens) * page_tokens
    if seq.num_computed >= shared_tokens:
        return False
    for other in seq.family.members:
        if other is seq:
            return False
        if other.status is SeqStatus.RUNNING and other.num_computed < shared_tokens:
            return True
    return False


def catch_up(seq: Sequence, pool: KVPool) -> None:
    """Take over pages of the prompt that a sibling has computed in the meantime."""
    if seq.num_computed >= shared_pages(seq, pool.page_tokens) * pool.page_tokens:
        return
    found = pool.find(seq.findable_ids)
    if len(found) > len(seq.page_table):
        pool.share(found)
        pool.release(seq.page_table)
        seq.page_table = found
        seq.num_published = len(found)
        seq.num_computed = len(found) * pool.page_tokens
