"""How far the end of a text repeats what stands before each of its places, kept up to date token by token.

Belongs to one sampler; engine thread. What is remembered is only work saved, see `sampling_text`. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.runtime.sampling_text import TextSoFar, Tokens

Lengths = NDArray[np.int32]

_FEW = 16
"""So many new tokens are taken one by one; after more, or another text, all is found anew."""


class Repeats:
    """The repetitions of one text that grows."""

    def __init__(self) -> None:
        self._text = TextSoFar()
        self._room = np.zeros(0, np.int32)

    def follow(self, token_ids: Sequence[int]) -> tuple[Tokens, Lengths]:
        """The text, and for each of its tokens how many before it are the same as the text's last ones.

        Views, valid until the next call. A token more takes some 1 ns a token of the text; another text than before
        some 300 ns a token.
        """
        known = self._text.follow(token_ids)
        tokens = self._text.tokens
        if tokens.size > self._room.size:
            room = np.zeros(tokens.size * 5 // 4 + 64, np.int32)
            room[:known] = self._room[:known]
            self._room = room
        if known > 0 and tokens.size - known <= _FEW:
            for place in range(known, tokens.size):
                self._append(tokens, place)
        else:
            self._room[: tokens.size] = [0, *ending_repeats(token_ids[::-1])[:0:-1]][: tokens.size]
        return tokens, self._room[: tokens.size]

    def _append(self, tokens: Tokens, place: int) -> None:
        """The text ends at `place` now: whoever stood before a copy of its ending and of this token has one more."""
        longer = self._room[:place] + 1
        longer *= tokens[:place] == tokens[place]
        self._room[1 : place + 1] = longer


def ending_repeats(newest_first: Sequence[int]) -> list[int]:
    """For each place of a text backwards: how many tokens from there on equal the first ones; 0 for the first place.

    The Z-algorithm (Gusfield, "Algorithms on Strings, Trees and Sequences", 1997, section 1.4), in linear time. Copies
    may overlap.
    """
    size = len(newest_first)
    prefix_at = [0] * size
    box_start = box_end = 0  # the known copy that reaches farthest
    at = 1
    while at < size:
        if at >= box_end:
            try:
                at = newest_first.index(newest_first[0], at)
            except ValueError:
                break
            length = 1
        else:
            length = min(prefix_at[at - box_start], box_end - at)
        if at + length >= box_end:
            while at + length < size and newest_first[length] == newest_first[at + length]:
                length += 1
            box_start, box_end = at, at + length
        prefix_at[at] = length
        at += 1
    return prefix_at
