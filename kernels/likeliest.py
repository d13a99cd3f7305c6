"""Where the native kernels put what they find in rows of logits: the likeliest tokens, or one drawn from these.

Belongs to the thread that runs the program. No torch, nothing of the engine.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct

from kernels.cpu.declarations import FoundStruct
from kernels.wishes import MOST_LIKELIEST, Found, Likeliest, Wish

_WISH = Struct("@iiixxxxdddQQP")
"""LaybyWish."""


class FoundRows:
    """What is wanted of rows and what was found. Plain arrays: a few numbers need no library to be read."""

    def __init__(self, rows: int) -> None:
        places = rows * MOST_LIKELIEST
        self._wishes: Sequence[Wish] = ()
        self._wanted = array("B", bytes(rows * _WISH.size))
        self._counts = array("i", bytes(4 * rows))
        self._drawn = array("i", bytes(4 * rows))
        self._ids = array("i", bytes(4 * places))
        self._logits = array("d", bytes(8 * places))
        self._ranking = array("i", bytes(4 * places))

    def struct(self) -> FoundStruct:
        """The places as the kernels see them; valid as long as this object."""
        arrays = (self._counts, self._drawn, self._ids, self._logits, self._ranking)
        return FoundStruct(*(one.buffer_info()[0] for one in arrays))

    def want(self, wishes: Sequence[Wish]) -> int:
        """Put down what is wanted of the rows of the next step; its address, valid as long as this object."""
        self._wishes = wishes
        for row, wish in enumerate(wishes):
            _WISH.pack_into(self._wanted, row * _WISH.size, *wish)
        return self._wanted.buffer_info()[0]

    def found(self) -> list[Found]:
        """What was found of the rows of which something was wanted."""
        found: list[Found] = []
        for row, wish in enumerate(self._wishes):
            if wish.is_drawn:
                token_id = self._drawn[row]
                found.append(token_id if token_id >= 0 else None)
            else:
                found.append(self._likeliest(row))
        return found

    def _likeliest(self, row: int) -> Likeliest | None:
        count = self._counts[row]
        if not count:
            return None
        begin = row * MOST_LIKELIEST
        end = begin + count
        return Likeliest(self._ids[begin:end], self._logits[begin:end], self._ranking[begin:end])
