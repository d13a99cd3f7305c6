"""One request's place in its grammar, and which tokens may come there. Engine thread. Imports no torch.

Where it stands is a function of the tokens of the reply: what is remembered is only work saved. Whoever is parked,
carried to another load or read from disk goes on with the tokens, and finds the same place by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.errors import InvalidRequest
from engine.runtime.token_mask import TokenMask

if TYPE_CHECKING:
    from llguidance import LLMatcher


_MOST_REASON = 600
"""Characters of it that are told."""


class GrammarMatcher:
    """Made by `grammar_compiler`; `param` is what errors call the grammar."""

    def __init__(self, library: LLMatcher, vocab_size: int, param: str) -> None:
        self.error: InvalidRequest | None = None
        """Why no token can be chosen any more; the request ends with it."""
        self.mask = TokenMask(vocab_size)
        """As of the latest `follow`."""
        self._library = library
        self._param = param
        self._taken: list[int] = []
        self._is_masked = False
        """Whether the mask is the one after the tokens taken."""

    def follow(self, reply_ids: Sequence[int]) -> TokenMask:
        """Which tokens may come after this reply. Sets `error` instead where none can, or where finding out costs too
        much; the mask then means nothing.
        """
        new = self._new_tokens(reply_ids)
        if new:
            self._taken += new
            self._is_masked = False
            self._library.consume_tokens(new)
        if not self._is_masked and self.error is None:
            self._library.unsafe_compute_mask_ptr(self.mask.address, self.mask.words.nbytes)
            if self._library.is_error():
                self.error = self._failure(self._library.get_error())
            self._is_masked = True
        return self.mask

    def _new_tokens(self, reply_ids: Sequence[int]) -> list[int]:
        known = len(self._taken)
        if len(reply_ids) == known + 1:  # a reply only grows
            return [reply_ids[known]]
        if list(reply_ids[:known]) == self._taken:
            return list(reply_ids[known:])
        self._library.reset()
        self._taken, self._is_masked = [], False
        return list(reply_ids)

    def _failure(self, reason: str) -> InvalidRequest:
        return InvalidRequest(
            f"{self._param} cannot be followed any further after {len(self._taken)} tokens of the reply: "
            f"{readable(reason)}; make it simpler, or allow more there",
            param=self._param,
        )


def readable(reason: str) -> str:
    """What the library says is wrong, without what is meant for its developers."""
    if reason.startswith("NoExtension"):
        return "no text of this model's tokens matches what comes next"
    return reason.partition("<non-verbose/>")[0].partition("<backtrace")[0].strip()[:_MOST_REASON]
