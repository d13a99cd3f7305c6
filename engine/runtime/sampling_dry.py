"""DRY ("don't repeat yourself"): a penalty for tokens that carry on a repetition, growing with its length.

Runs on the engine thread, in place on one float64 row of logits; a function of the parameters and the
tokens so far. Imports no torch.

Where the text ends in n tokens that occurred before, the token that followed them then loses
multiplier * base ** (n - allowed_length), if n reaches allowed_length. A repetition never reaches back
over a sequence breaker, and breakers themselves are not penalised.
Source: its author p-e-w's proposal, pull request 5677 of oobabooga/text-generation-webui.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from engine.runtime.sampling_penalties import last_tokens

_MAX_BREAKERS = 256
_LARGEST_POWER = 1e300
"""Powers of the base stop here: a penalty stays finite, so the only token left can still be chosen."""


class DryPenalty:
    """The penalty with one request's parameters. `token_bytes` gives the bytes of any id in its text.

    Raises InvalidRequest when a sequence breaker is empty or there are more than 256.
    """

    def __init__(self, params: SamplingParams, token_bytes: Callable[[int], bytes]) -> None:
        _check(params.dry_sequence_breakers)
        self._params = params
        self._token_bytes = token_bytes
        self._breakers = tuple(
            text.encode(errors="surrogatepass") for text in params.dry_sequence_breakers
        )
        log_base = math.log(params.dry_base)
        max_exponent = int(math.log(_LARGEST_POWER) / log_base) if log_base > 0 else 0
        self._longest_that_counts = params.dry_allowed_length + max_exponent

    @property
    def is_off(self) -> bool:
        """Whether `apply` does nothing."""
        return self._params.dry_multiplier == 0.0 or self._params.dry_penalty_last_n == 0

    def apply(self, row: NDArray[np.float64], token_ids: Sequence[int]) -> None:
        """Subtract the penalties.

        Takes time linear in the tokens looked at: about 10 ns for each, more inside repetitions.
        """
        params = self._params
        if self.is_off:
            return
        window = last_tokens(token_ids, params.dry_penalty_last_n)
        repeats = longest_repeats(window[::-1])
        longest = max(repeats.values(), default=0)
        if longest < params.dry_allowed_length:
            return
        limit = self._tokens_since_breaker(window, min(longest, self._longest_that_counts))
        for token_id, length in repeats.items():
            exponent = min(length, limit) - params.dry_allowed_length
            if exponent >= 0 and token_id < row.size and not self._is_breaker(token_id):
                row[token_id] -= params.dry_multiplier * params.dry_base**exponent

    def _is_breaker(self, token_id: int) -> bool:
        text = self._token_bytes(token_id)
        return any(breaker in text for breaker in self._breakers)

    def _tokens_since_breaker(self, window: Sequence[int], count: int) -> int:
        """How many of the last `count` tokens lie wholly behind the last breaker, which may span tokens."""
        # a breaker may begin before those tokens; each token there has at least one byte of it
        lead = max(map(len, self._breakers), default=1) - 1
        texts = [self._token_bytes(token_id) for token_id in window[-(count + lead) :]]
        text = b"".join(texts)
        ends = [at + len(breaker) for breaker in self._breakers if (at := text.rfind(breaker)) >= 0]
        bytes_left = len(text) - max(ends, default=0)
        for tokens, token_bytes in enumerate(reversed(texts[-count:])):
            bytes_left -= len(token_bytes)
            if bytes_left < 0:
                return tokens
        return count


def longest_repeats(newest_first: Sequence[int]) -> dict[int, int]:
    """For each token that followed an earlier copy of the text's ending: tokens in the longest such copy.

    `newest_first` is the text backwards, so that its endings are prefixes and the Z-algorithm (Gusfield,
    "Algorithms on Strings, Trees and Sequences", 1997, section 1.4) finds every copy in linear time.
    Copies may overlap the ending.
    """
    size = len(newest_first)
    prefix_at = [0] * size  # tokens from here on that equal the first ones
    repeats: dict[int, int] = {}
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
        if length:
            follower = newest_first[at - 1]
            repeats[follower] = max(length, repeats.get(follower, 0))
        at += 1
    return repeats


def _check(breakers: tuple[str, ...]) -> None:
    if len(breakers) > _MAX_BREAKERS:
        raise InvalidRequest(
            f"dry_sequence_breakers has {len(breakers)} strings, allowed are {_MAX_BREAKERS}; give fewer",
            param="dry_sequence_breakers",
        )
    if "" in breakers:
        raise InvalidRequest(
            "dry_sequence_breakers has an empty string; leave it out", param="dry_sequence_breakers"
        )
