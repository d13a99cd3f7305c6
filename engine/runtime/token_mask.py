"""Which tokens of a vocabulary may come next. Engine thread. Imports no torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORD_BITS = 32


class TokenMask:
    """A bit for each token, 32 a word, the lowest id in the lowest bit. Its memory stays where it is."""

    def __init__(self, vocab_size: int) -> None:
        self.words: NDArray[np.uint32] = np.zeros(-(-vocab_size // _WORD_BITS), np.uint32)
        self.address = self.words.ctypes.data

    def masked(self, row: NDArray[np.floating]) -> NDArray[np.floating]:
        """A copy of a row of logits with -inf for each token that may not come. row: at most the vocabulary."""
        bits = np.unpackbits(self.words.view(np.uint8), count=row.size, bitorder="little")
        return np.where(bits.view(np.bool_), row, row.dtype.type(-np.inf))
