"""How well a few letters name a thing, for the command palette. Pure functions; any thread.

Letters match in order but not necessarily side by side ("nch" finds "New chat"). Case and accents do not count.
"""

from __future__ import annotations

import unicodedata

_AT_START = 12
_AFTER_LAST = 6
_PER_GAP = 1
_MOST_GAP_COST = 8


def fold(text: str) -> str:
    """The text without case and accents, letter for letter where it can be."""
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def score(wanted: str, text: str) -> int | None:
    """How well `wanted` names `text`, the higher the better; None if its letters are not all there, in order.

    Each word of `wanted` must be found; what starts a word counts most, then what follows the letter before.
    """
    folded = fold(text)
    total = 0
    for word in fold(wanted).split():
        found = max(
            (
                worth
                for start, letter in enumerate(folded)
                if letter == word[0] and (worth := _score_from(word, folded, start)) is not None
            ),
            default=None,
        )
        if found is None:
            return None
        total += found
    return total - len(folded) // 8  # of two that fit alike, the shorter one


def _score_from(word: str, text: str, start: int) -> int | None:
    """The worth of taking each letter at its first place from `start` on."""
    total, place = 0, start - 1
    for number, letter in enumerate(word):
        found = text.find(letter, place + 1)
        if found < 0:
            return None
        if found == 0 or not text[found - 1].isalnum():
            total += _AT_START
        elif number and found == place + 1:
            total += _AFTER_LAST
        elif number:
            total -= min(_MOST_GAP_COST, _PER_GAP * (found - place - 1))
        place = found
    return total
