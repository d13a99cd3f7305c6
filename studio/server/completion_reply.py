"""Engine events -> OpenAI's text completions: the chunks of a stream and the whole reply, which have one shape.

Server thread.
"""

from __future__ import annotations

import math
from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass

from engine.api import Finished, Started, TokenDelta, TokenLogprob
from engine.errors import EngineError
from studio.server.errors import ApiError, error_body
from studio.server.framing import EVENTS, Framing, Json
from studio.server.replies import (
    ReplyHead,
    closing_chunks,
    finish_reason,
    finite,
    total_usage,
)
from studio.server.reply_parts import PartKind, ReplyParts
from studio.server.reply_shape import ReplyEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionTelling:
    """What a client wants to be told."""

    has_logprobs: bool = False
    includes_usage: bool = False
    echoes: tuple[str, ...] = ()
    """The prompt that stands before each choice; empty: none does."""
    scores_prompt: bool = False
    """Whether the prompt's log probabilities are told too: the first delta has them."""
    tried_per_prompt: int = 1
    told_per_prompt: int = 1
    """If fewer than are tried: the likeliest of them."""


class CompletionReply:
    """text_completion."""

    def __init__(self, head: ReplyHead, telling: CompletionTelling) -> None:
        self._head = head
        self._telling = telling
        self._offsets: dict[int, TextOffset] = {}
        self._told: set[int] = set()

    @property
    def framing(self) -> Framing:
        return EVENTS

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        if not self._telling.echoes or self._telling.scores_prompt:
            return ()
        return (self._of([self._choice(index, self._telling.echoes[index], (), None)]),)

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        text = event.text
        if self._telling.scores_prompt and index not in self._told:
            self._told.add(index)
            text = self._telling.echoes[index] + text
        return (self._of([self._choice(index, text, event.logprobs, None)]),)

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return (self._of([self._choice(index, "", (), None)]),)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        chunk = self._of([self._choice(index, "", (), finish_reason(finished.reason))])
        return closing_chunks(chunk, end, self._of([]) if self._telling.includes_usage else None)

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return (error_body(error),)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        echoes = self._telling.echoes
        wire = [
            self._choice(
                index,
                (echoes[tried] if echoes else "") + choices[tried].text_of(PartKind.TEXT),
                choices[tried].logprobs,
                finish_reason(choices[tried].reason),
            )
            for index, tried in enumerate(self._told_choices(choices))
        ]
        return {**self._of(wire), "usage": total_usage(end), **end.park_fields}

    def _told_choices(self, choices: Sequence[ReplyParts]) -> list[int]:
        """Which of those that were tried are told: of each prompt the likeliest ones, the best first."""
        tried, told = self._telling.tried_per_prompt, self._telling.told_per_prompt
        if tried == told:
            return list(range(len(choices)))
        best: list[int] = []
        for first in range(0, len(choices), tried):
            of_prompt = range(first, first + tried)
            best += sorted(of_prompt, key=lambda i: -_mean_logprob(choices[i]))[:told]
        return best

    def _of(self, choices: list[Json]) -> Json:
        base = {**self._head.fields("text_completion"), "choices": choices}
        return {**base, "usage": None} if self._telling.includes_usage else base

    def _choice(
        self, index: int, text: str, tokens: Sequence[TokenLogprob], reason: str | None
    ) -> Json:
        has_logprobs = self._telling.has_logprobs and tokens
        logprobs = self._logprobs(index, tokens) if has_logprobs else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, index: int, tokens: Sequence[TokenLogprob]) -> Json:
        """Four parallel lists; offsets are in characters of the choice's text, counted on from chunk to chunk."""
        if index not in self._offsets:
            self._offsets[index] = TextOffset(self._first_offset(index))
        offset = self._offsets[index]
        offsets = [offset.before(token.token_bytes) for token in tokens]
        return {
            "tokens": [_spelled(token) for token in tokens],
            "token_logprobs": [_logprob(token) for token in tokens],
            "top_logprobs": [_top(token) for token in tokens],
            "text_offset": offsets,
        }

    def _first_offset(self, index: int) -> int:
        """The reply's own tokens begin behind the prompt, where that is told without its tokens."""
        telling = self._telling
        return len(telling.echoes[index]) if telling.echoes and not telling.scores_prompt else 0


class TextOffset:
    """Where tokens begin, in characters of the text that they make; all parts of a character begin where it does."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def before(self, token_bytes: bytes) -> int:
        """Where a token begins that comes behind those before."""
        begin = self._next
        self._next += len(self._decoder.decode(token_bytes))
        return begin


def _mean_logprob(choice: ReplyParts) -> float:
    """Over the tokens of the reply, without the prompt's; nothing written is as unlikely as can be."""
    assert choice.finished is not None
    count = choice.finished.usage.completion_tokens
    values = [token.logprob for token in choice.logprobs[len(choice.logprobs) - count :]]
    return math.fsum(values) / len(values) if values else -math.inf


def _logprob(token: TokenLogprob) -> float | None:
    """None for the first token of a prompt."""
    return None if math.isnan(token.logprob) else finite(token.logprob)


def _top(token: TokenLogprob) -> dict[str, float] | None:
    if math.isnan(token.logprob):
        return None
    top: dict[str, float] = {}
    for each in token.top:  # the likeliest first
        top.setdefault(_spelled(each), finite(each.logprob))
    return top


def _spelled(token: TokenLogprob) -> str:
    """Its text, by which alternatives are told apart; of one that is no whole characters its bytes, as OpenAI does."""
    try:
        return token.token_bytes.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token.token_bytes)
