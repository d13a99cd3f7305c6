"""How much room there is, and how much somebody needs. Pure questions to the Yard; figures come from the pool itself.

All figures are pages. A sequence in the pool is *promised* the pages for all tokens it has, a
whole prompt included, so what is *spare* can be given to others without sending anybody out.
"""

from __future__ import annotations

from engine.core.config import MARGIN_TOKENS
from engine.core.parked import Fate
from engine.core.siblings import is_held_back, shared_pages
from engine.core.types import Party, SeqStatus, Sequence
from engine.core.yard import Yard


def plan_pages(yard: Yard, tokens: int) -> int:
    """Pages for `tokens`, in blocks of the granularity that a test may have set."""
    block = yard.config.knobs.granularity_tokens
    if block:
        tokens = -(-tokens // block) * block
    return yard.pool.pages_for(tokens)


def promised(yard: Yard, seq: Sequence) -> int:
    """Pages that a sequence in the pool has yet to take for tokens it has."""
    size = yard.config.page_tokens
    pages = yard.pool.pages_for(len(seq.token_ids)) - len(seq.page_table)
    if is_held_back(seq, size):
        pages -= shared_pages(seq, size) - len(seq.page_table)
    return pages


def spare(yard: Yard) -> int:
    """Usable pages that nobody in the pool is promised."""
    residents = yard.running + yard.lines[SeqStatus.RESTORING]
    if yard.config.knobs.granularity_tokens:
        others = (*yard.lines[SeqStatus.PARKING], *yard.lines[SeqStatus.STAYING])
        return yard.pool.num_pages - sum(
            plan_pages(yard, len(seq.token_ids)) for seq in (*residents, *others)
        )
    return yard.pool.num_usable - sum(promised(yard, seq) for seq in residents)


def margin(yard: Yard, num_residents: int) -> int:
    """Pages left free for a few steps of everybody, rounded up once for all of them.

    Asynchronous parks free their pages only some steps later, which takes some more.
    """
    return plan_pages(yard, MARGIN_TOKENS * (num_residents + yard.config.park.is_async))


def runway(yard: Yard) -> int:
    """The margin of a step: nothing, unless parks are asynchronous."""
    park = yard.config.park
    if not park.is_async or all(seq.parks_in_step for seq in yard.running):
        return 0
    return margin(yard, yard.num_seated)


def pages_to_enter(yard: Yard, party: Party) -> int:
    """Usable pages that a party outside the pool needs for all tokens it has."""
    parked = party[0].parked
    if parked is not None and parked.fate is Fate.SWAP:
        return yard.keeper.pages_to_return(party)
    known: set[int] = set()
    pages = 0
    for seq in party:
        found = yard.pool.find(seq.findable_ids)
        known.update(found)
        covered = len(found)
        if _has_elder(seq, party):
            covered = max(covered, shared_pages(seq, yard.config.page_tokens))
        pages += yard.pool.pages_for(len(seq.token_ids)) - covered
    return pages + yard.pool.cost(known)


def planned_to_enter(yard: Yard, party: Party) -> int:
    """The same in the blocks of a test's granularity, if it has set one."""
    if yard.config.knobs.granularity_tokens:
        return sum(plan_pages(yard, len(seq.token_ids)) for seq in party)
    return pages_to_enter(yard, party)


def final_tokens(yard: Yard, seq: Sequence) -> int:
    """Tokens it will hold in the end, where its own limit ends it before the window does; else what it holds now."""
    final = len(seq.token_ids) + seq.max_new_tokens - seq.num_generated
    return final if final < yard.config.sequence_tokens else len(seq.token_ids)


def tokens_left(yard: Yard, seq: Sequence) -> int:
    """Tokens it may still generate at most: its own limit ends it, or the window if its context is not shifted."""
    left = seq.max_new_tokens - seq.num_generated
    if seq.keep_tokens is not None:
        return left
    return min(left, yard.config.sequence_tokens - len(seq.token_ids))


def growth(yard: Yard, seq: Sequence) -> int:
    """Pages it will take beyond those for the tokens it has, as far as that is known."""
    return plan_pages(yard, final_tokens(yard, seq)) - plan_pages(yard, len(seq.token_ids))


def _has_elder(seq: Sequence, party: Party) -> bool:
    """Whether a sibling brings, or holds, the pages of the prompt."""
    if seq is not party[0]:
        return True
    return seq.family is not None and seq.family.is_running
