"""Takes what the model gives for the tokens of a prompt: for its embedding, or for the tokens' own probabilities.

Outputs come in the order of the tokens, however steps cut the prompt; after a park that dropped its state they may come
again, and are passed over. So no bit of a result depends on either. Engine thread; no tensor library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.api import Embedded, PromptRead, RequestEvent, TokenLogprob
from engine.errors import DeviceFailure
from engine.formats.pooling import Pooling
from engine.runtime.live_request import prompt_token, token_logprobs
from engine.runtime.sampler import Sampler
from engine.text.tokenizer import Tokenizer


class OutputReader(Protocol):
    """One for each request that wants more than the outputs its tokens are sampled from."""

    num_unwanted: int
    """Outputs of so many tokens at the beginning are not needed."""
    until: int
    """Outputs of tokens from this position on are not needed."""

    def take(self, start: int, outputs: NDArray[np.float32]) -> None:
        """Outputs [tokens, width] of the tokens from position `start` on, valid during the call."""

    def told(self) -> tuple[RequestEvent, ...]:
        """What there is to tell, once, when all outputs have come. Raises DeviceFailure for numbers that are none."""


class Pooler:
    """Makes the embedding: the mean of all tokens' last states, or that of one token, scaled to length 1."""

    def __init__(self, request_id: str, pooling: Pooling, num_tokens: int, width: int) -> None:
        self.num_unwanted = num_tokens - 1 if pooling is Pooling.LAST else 0
        self.until = 1 if pooling is Pooling.FIRST else num_tokens
        self._request_id = request_id
        self._num_seen = self.num_unwanted
        self._sum = np.zeros(width, np.float64)
        self._is_told = False

    def take(self, start: int, outputs: NDArray[np.float32]) -> None:
        for state in outputs[max(self._num_seen - start, 0) : max(self.until - start, 0)]:
            self._sum += state  # one after another: their number in a step must not matter
            self._num_seen += 1

    def told(self) -> tuple[RequestEvent, ...]:
        if self._is_told or self._num_seen < self.until:
            return ()
        self._is_told = True
        length = math.sqrt(math.fsum(value * value for value in self._sum.tolist()))
        if not 0.0 < length < math.inf:
            raise DeviceFailure(
                f"the model gave no usable numbers for this text (their length is {length}); load it again, and if "
                "that does not help its file is damaged"
            )
        values = (self._sum / length).astype(np.float32)
        return (Embedded(request_id=self._request_id, values=tuple(values.tolist())),)


class PromptScorer:
    """Finds the log probability of each token of a prompt from the outputs of the one before it."""

    num_unwanted = 0

    def __init__(
        self, request_id: str, token_ids: Sequence[int], sampler: Sampler, tokenizer: Tokenizer
    ) -> None:
        self.until = max(len(token_ids) - 1, 1)
        self._request_id = request_id
        self._token_ids = tuple(token_ids)
        self._sampler = sampler
        self._tokenizer = tokenizer
        self._tokens: list[TokenLogprob] = [prompt_token(token_ids[0], tokenizer)]
        self._is_told = False

    def take(self, start: int, outputs: NDArray[np.float32]) -> None:
        first, last = len(self._tokens) - 1 - start, len(self._token_ids) - 1 - start
        for place in range(max(first, 0), min(last, len(outputs))):
            token_id = self._token_ids[start + place + 1]
            scored = self._sampler.scored(token_id, outputs[place])
            self._tokens += token_logprobs(scored, self._tokenizer)

    def told(self) -> tuple[RequestEvent, ...]:
        if self._is_told or len(self._tokens) < len(self._token_ids):
            return ()
        self._is_told = True
        return (PromptRead(request_id=self._request_id, tokens=tuple(self._tokens)),)
