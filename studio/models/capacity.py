"""How many chats of some length a pool holds at once, and what becomes of one more. Pure arithmetic on pages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from engine.options import LEAST_POOL_TOKENS

PAGE_TOKENS = LEAST_POOL_TOKENS
"""The least that can be asked for is one page."""
USUAL_CHAT_TOKENS = 2000
"""A chat of some twenty turns, for saying how many fit where no length is asked about."""


class OneMore(Enum):
    """What becomes of one chat more than fit."""

    PARKS = "parks"
    """All take turns: whoever waits is parked and comes back by itself."""
    QUEUES = "queues"
    """There is room, but as many run at once as may: it waits in line."""
    ENDS = "ends"
    """Nobody is parked: a chat that finds no room ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """`fit` chats of `chat_tokens` run at once; 0: not even one has room."""

    chat_tokens: int
    room: int
    """As many have room in the pool; more than `fit` where fewer may run at once."""
    fit: int
    one_more: OneMore


def capacity_of(
    pool_tokens: int,
    *,
    chat_tokens: int,
    parallel: int,
    can_park: bool = True,
    page_tokens: int = PAGE_TOKENS,
) -> Capacity:
    """Chats that share no beginning, each as long as `chat_tokens` in the end, prompt and replies together.

    Raises ValueError for a length, a number of seats or a page size below 1.
    """
    for name, value in (
        ("chat_tokens", chat_tokens),
        ("parallel", parallel),
        ("page_tokens", page_tokens),
    ):
        if value < 1:
            raise ValueError(f"{name} is {value}, it must be at least 1")
    pages_each = -(-chat_tokens // page_tokens)
    by_room = max(pool_tokens, 0) // page_tokens // pages_each
    one_more = OneMore.PARKS if can_park else OneMore.ENDS
    if by_room >= parallel:
        one_more = OneMore.QUEUES
    fit = min(by_room, parallel)
    return Capacity(chat_tokens=chat_tokens, room=by_room, fit=fit, one_more=one_more)
