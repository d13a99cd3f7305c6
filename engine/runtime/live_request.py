"""One request from submission to its terminal event: what the scheduler's integers do not hold. Engine thread only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api import Request, TokenLogprob, Usage
from engine.core.types import Sequence
from engine.runs import SteeringCommand
from engine.runtime.grammar_matcher import GrammarMatcher
from engine.runtime.least_tokens import LeastTokens
from engine.runtime.sampler import SampledToken, Sampler
from engine.runtime.token_mask import TokenMask
from engine.text.replies.reply_format import ReplyPlan
from engine.text.text_stream import TextStream
from engine.text.tokenizer import Tokenizer
from kernels.wishes import Wish

if TYPE_CHECKING:
    from engine.runtime.output_reader import OutputReader


@dataclass(slots=True)
class Generation:
    """A request whose prompt is tokenised. A park loses nothing of this: none of it lives in the pool."""

    seq: Sequence
    sampler: Sampler
    seed: int
    stream: TextStream
    continues_text: bool
    """Whether the reply goes on a raw text instead of answering a chat."""
    plan: ReplyPlan | None = None
    """How the reply is told apart; None: all of it is text."""
    matcher: GrammarMatcher | None = None
    """Its place in the grammar of its request; None: it may say anything."""
    least: LeastTokens | None = None
    """What keeps it from ending too early; None: it may end at once."""
    mask: TokenMask | None = None
    """Which tokens may come, as of the latest wish; None: all."""
    parked_before_first_s: float = 0.0
    """Share of the parked time that fell before the first token."""
    reply_ids: list[int] = field(default_factory=list)
    """Every token generated so far, those that a context shift has forgotten too."""
    num_recomputes_told: int = 0
    """Recomputes that its listeners have heard of."""
    reader: OutputReader | None = None
    """What takes the outputs of its prompt, if they are wanted."""

    def read_with(self, reader: OutputReader, *, in_one_step: int | None) -> None:
        """Have the outputs of its prompt taken, so many tokens a step at most (None: as many as there is room for)."""
        self.reader = reader
        self.seq.num_read, self.seq.read_until = reader.num_unwanted, reader.until
        self.seq.read_tokens = in_one_step

    def wish(self) -> Wish:
        """What is wanted of the row in which its next token is chosen."""
        self.mask = None if self.matcher is None else self.matcher.follow(self.reply_ids)
        if self.least is not None:
            self.mask = self.least.within(self.mask, len(self.reply_ids))
        return self.sampler.wish(len(self.seq.token_ids) + self.seq.num_discarded, self.mask)


@dataclass(slots=True)
class LiveRequest:
    """`generation` is None while the prompt is with the intake worker."""

    request: Request
    arrival: int
    arrival_s: float
    generation: Generation | None = None
    has_sent_text: bool = False
    is_in_line: bool = False
    """Whether the scheduler knows it: its prompt has been read, and those it is asked together with are there."""
    wishes: list[SteeringCommand] = field(default_factory=list)
    """Commands that concern it and came before it was in line."""

    def usage(self, now_s: float) -> Usage:
        """What the request has cost so far. Parked time is in `parked_s` and in no other figure."""
        if self.generation is None:
            return Usage(
                prompt_tokens=0,
                cached_tokens=0,
                completion_tokens=0,
                queued_s=now_s - self.arrival_s,
                prefill_s=0.0,
                decode_s=0.0,
            )
        seq, early_s = self.generation.seq, self.generation.parked_before_first_s
        started_s = seq.started_s if seq.started_s is not None else now_s
        first_token_s = seq.first_token_s if seq.first_token_s is not None else now_s
        return Usage(
            prompt_tokens=seq.num_prompt,
            cached_tokens=seq.num_cached,
            completion_tokens=seq.num_generated,
            queued_s=started_s - self.arrival_s,
            prefill_s=max(first_token_s - started_s - early_s, 0.0),
            decode_s=max(now_s - first_token_s - (seq.parked_s - early_s), 0.0),
            parked_s=seq.parked_s,
            num_parks=seq.num_parks,
            num_recomputes=seq.num_recomputes,
            seed=self.generation.seed,
        )


def token_logprobs(sampled: SampledToken, tokenizer: Tokenizer) -> tuple[TokenLogprob, ...]:
    """The chosen token's logprob with its alternatives inside; empty when the request asked for none."""
    if sampled.logprob is None:
        return ()
    top = tuple(_logprob(token_id, value, tokenizer) for token_id, value in sampled.top)
    return (_logprob(sampled.token_id, sampled.logprob, tokenizer, top),)


def prompt_token(token_id: int, tokenizer: Tokenizer) -> TokenLogprob:
    """The first token of a prompt, which has no probability."""
    return _logprob(token_id, math.nan, tokenizer)


def _logprob(
    token_id: int, value: float, tokenizer: Tokenizer, top: tuple[TokenLogprob, ...] = ()
) -> TokenLogprob:
    raw = tokenizer.token_bytes(token_id)
    return TokenLogprob(
        token_id=token_id,
        text=raw.decode("utf-8", errors="replace"),
        token_bytes=raw,
        logprob=value,
        top=top,
    )
