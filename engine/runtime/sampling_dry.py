"""DRY ("don't repeat yourself"): a penalty for tokens that carry on a repetition, growing with its length.

Runs on the engine thread; a function of the parameters and the tokens so far. Imports no torch.

Where the text ends in n tokens that occurred before, the token that followed them then loses
multiplier * base ** (n - allowed_length), if n reaches allowed_length. A repetition never reaches back
over a sequence breaker, and breakers themselves are not penalised.
Source: its author p-e-w's proposal, pull request 5677 of oobabooga/text-generation-webui.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from engine.runtime.sampling_changes import Touch
from engine.runtime.sampling_repeats import Repeats

_MAX_BREAKERS = 256
_LARGEST_POWER = 1e300
"""Powers of the base stop here: a penalty stays finite, so the only token left can still be chosen."""


class DryPenalty:
    """The penalty with one request's parameters. `token_bytes` gives the bytes of any id in its text.

    Raises InvalidRequest when a sequence breaker is empty or there are more than 256.
    """

    def __init__(
        self, params: SamplingParams, token_bytes: Callable[[int], bytes], *, vocab_size: int
    ) -> None:
        _check(params.dry_sequence_breakers)
        self._params = params
        self._token_bytes = token_bytes
        self._vocab_size = vocab_size
        self._repeats = Repeats()
        self._breakers = tuple(
            text.encode(errors="surrogatepass") for text in params.dry_sequence_breakers
        )
        self._known_breakers: dict[int, bool] = {}
        log_base = math.log(params.dry_base)
        max_exponent = int(math.log(_LARGEST_POWER) / log_base) if log_base > 0 else 0
        self._longest_that_counts = params.dry_allowed_length + max_exponent

    @property
    def is_off(self) -> bool:
        """Whether `touch` never gives anything."""
        return self._params.dry_multiplier == 0.0 or self._params.dry_penalty_last_n == 0

    def touch(self, token_ids: Sequence[int]) -> Touch | None:
        """Subtracts the penalties."""
        params = self._params
        tokens, lengths = self._repeats.follow(token_ids)
        first = 0 if params.dry_penalty_last_n < 0 else tokens.size - params.dry_penalty_last_n
        if first > 0:  # copies begin in the window
            tokens = tokens[first:]
            lengths = np.minimum(lengths[first:], np.arange(tokens.size))
        places = (lengths >= params.dry_allowed_length).nonzero()[0]
        if not places.size:
            return None
        longest = min(int(lengths[places].max()), self._longest_that_counts)
        limit = self._tokens_since_breaker(token_ids[max(first, 0) :], longest)
        if limit < params.dry_allowed_length:
            return None
        followers, which = np.unique(tokens[places], return_inverse=True)
        repeats = np.zeros(followers.size, np.int64)
        np.maximum.at(repeats, which, lengths[places].astype(np.int64))
        penalties = {
            token_id: params.dry_multiplier
            * params.dry_base ** (min(length, limit) - params.dry_allowed_length)
            for token_id, length in zip(followers.tolist(), repeats.tolist(), strict=True)
            if token_id < self._vocab_size and not self._is_breaker(token_id)
        }
        if not penalties:
            return None
        taken = np.array(list(penalties.values()))
        return Touch(np.array(list(penalties)), lambda logits: logits - taken)

    def _is_breaker(self, token_id: int) -> bool:
        known = self._known_breakers.get(token_id)
        if known is None:
            text = self._token_bytes(token_id)
            known = any(breaker in text for breaker in self._breakers)
            self._known_breakers[token_id] = known
        return known

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
