"""What a step may be asked about rows of logits beside the rows themselves, and the answers. No torch."""

from __future__ import annotations

from array import array
from typing import NamedTuple

MOST_LIKELIEST = 256
"""Likeliest tokens that a row gives at most."""


class Wish(NamedTuple):
    """What is wanted of one row: some of its likeliest tokens, or one drawn from these."""

    num_likeliest: int = 0
    """Of the likeliest tokens, up to MOST_LIKELIEST; 0: none."""
    is_drawn: bool = False
    """Whether one of them is drawn. Then the others are not told."""
    vocabulary: int = 0
    """Ids from here on are padding: where one is among the likeliest, none is drawn."""
    temperature: float = 0.0
    """0: the likeliest of all is taken."""
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    """64 bits, not negative, as the position: together they are the dice."""
    position: int = 0
    allowed: int = 0
    """Where, until the step has run, a bit for each id of the vocabulary lies, 32 a word, the lowest first: tokens
    that may come. The row then has -inf in all other places. 0: all may come."""


class Likeliest(NamedTuple):
    """The largest logits of a row, all above -inf, of equals those of the lower ids."""

    ids: array[int]
    """Ascending."""
    logits: array[float]
    """Of these ids; float64."""
    ranking: array[int]
    """Places in `ids`, the likeliest first, of equals the lower id."""


Found = int | Likeliest | None
"""The id of a token that was drawn, or the likeliest ones; None: nothing was wanted, or it cannot be told."""
