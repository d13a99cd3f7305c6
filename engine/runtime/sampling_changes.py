"""What the stages before the filters do to logits: a few tokens, each by its own logit alone.

That is why a row need not be copied to be changed: the logits of the touched tokens are read, changed and put beside
the others'. Engine thread. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Touch:
    """What one stage does after one text."""

    ids: Ids
    """Tokens of the vocabulary, ascending, each once."""
    change: Callable[[Floats], Floats]
    """From their logits to their new ones."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Tokens whose logits are others than the row's."""

    ids: Ids
    """Ascending, each once."""
    logits: Floats


class Stage(Protocol):
    """A stage before the filters, with one request's parameters."""

    @property
    def is_off(self) -> bool:
        """Whether it never touches anything."""

    def touch(self, token_ids: Sequence[int]) -> Touch | None:
        """What it does after this text; None: nothing. A function of the text and the parameters."""


class LogitChanges:
    """The stages of one request that are on, in their order."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = [stage for stage in stages if not stage.is_off]

    @property
    def are_none(self) -> bool:
        """Whether no row is ever changed."""
        return not self._stages

    def after(self, token_ids: Sequence[int], row: NDArray[np.floating]) -> Changed | None:
        """What becomes of a row after this text; None: it stays as it is. The row is only read."""
        found = [stage.touch(token_ids) for stage in self._stages]
        touches = [touch for touch in found if touch is not None]
        if not touches:
            return None
        if len(touches) == 1:
            only = touches[0]
            return Changed(only.ids, only.change(row[only.ids].astype(np.float64)))
        ids = np.unique(np.concatenate([touch.ids for touch in touches]))
        logits = row[ids].astype(np.float64)
        for touch in touches:
            places = ids.searchsorted(touch.ids)
            logits[places] = touch.change(logits[places])
        return Changed(ids, logits)
