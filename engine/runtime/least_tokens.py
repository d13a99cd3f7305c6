"""Keeps a reply from ending before it has as many tokens as asked for. Engine thread. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.runtime.token_mask import TokenMask


class LeastTokens:
    """One request's; beside a grammar that leaves nothing but the end it gives way."""

    def __init__(self, least: int, end_ids: Iterable[int], vocab_size: int) -> None:
        self._least = least
        allowed = np.ones(vocab_size, np.bool_)
        allowed[[token_id for token_id in end_ids if token_id < vocab_size]] = False
        self._alone, self._joint = TokenMask(vocab_size), TokenMask(vocab_size)
        packed = np.packbits(allowed, bitorder="little")
        self._alone.words.view(np.uint8)[: packed.size] = packed

    def within(self, mask: TokenMask | None, num_written: int) -> TokenMask | None:
        """Which tokens may come after so many of the reply. mask: those that the grammar allows; None: all."""
        if num_written >= self._least:
            return mask
        if mask is None:
            return self._alone
        np.bitwise_and(self._alone.words, mask.words, out=self._joint.words)
        return self._joint if self._joint.words.any() else mask
