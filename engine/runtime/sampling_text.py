"""The tokens of one request's text as an array, so that looking back over them takes no loop.

Belongs to one sampler; engine thread. What is remembered is only work saved: every call compares the text with what is
remembered and starts anew where it is another. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]


class TextSoFar:
    """A text that mostly is the one of the call before and a token more."""

    def __init__(self) -> None:
        self._seen: list[int] = []
        self._room = np.empty(0, np.int32)

    @property
    def tokens(self) -> Tokens:
        """All of the latest text; a view, valid until the next one."""
        return self._room[: len(self._seen)]

    def follow(self, token_ids: Sequence[int]) -> int:
        """Take the text as it is now; how many tokens at its beginning are the whole of the text before, or 0.

        Comparing takes some 2 ns a token.
        """
        known = len(self._seen)
        if token_ids[:known] != self._seen:
            known, self._seen = 0, []
        new = token_ids[known:]
        self._seen += new
        if len(self._seen) > self._room.size:
            room = np.empty(len(self._seen) * 5 // 4 + 64, np.int32)
            room[:known] = self._room[:known]
            self._room = room
        self._room[known : len(self._seen)] = new
        return known
