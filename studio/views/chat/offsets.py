"""Lengths one after another, any of which may change: where each begins, and which one is at a place. Pure.

A Fenwick tree (Software: Practice and Experience 24, 1994): both questions and a change take the logarithm of the
number of lengths, so that a transcript of thousands of messages costs no more to lay out than a short one.
"""

from __future__ import annotations


class Offsets:
    """The first length begins at `origin`."""

    def __init__(self, origin: int) -> None:
        self._origin = origin
        self._lengths: list[int] = []
        self._sums: list[int] = [0]
        """Place i, from 1, has the sum of the lengths (i - lowest bit of i, i]."""

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def end(self) -> int:
        """Where the last length ends."""
        return self.start(len(self._lengths))

    def start(self, index: int) -> int:
        """Where a length begins."""
        total, sums = self._origin, self._sums
        while index:
            total += sums[index]
            index &= index - 1
        return total

    def index_at(self, y: int) -> int:
        """The last length that begins at or above a place; 0 where none does."""
        rest, index, size = y - self._origin, 0, len(self._lengths)
        if rest < 0 or not size:
            return 0
        step = 1 << size.bit_length() - 1
        while step:
            after = index + step
            if after <= size and self._sums[after] <= rest:
                index, rest = after, rest - self._sums[after]
            step >>= 1
        return min(index, size - 1)

    def cut(self, size: int) -> None:
        """Keep the first lengths only."""
        del self._lengths[size:]
        del self._sums[size + 1 :]

    def append(self, length: int) -> None:
        """Add a length to the end."""
        self._lengths.append(length)
        place = len(self._lengths)
        total, lower, until = length, place - 1, place & (place - 1)
        while lower > until:
            total += self._sums[lower]
            lower &= lower - 1
        self._sums.append(total)

    def set(self, index: int, length: int) -> None:
        """Give a length another value."""
        change = length - self._lengths[index]
        if not change:
            return
        self._lengths[index] = length
        place = index + 1
        while place < len(self._sums):
            self._sums[place] += change
            place += place & -place
