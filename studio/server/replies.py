"""Engine events -> wire replies: the chunks of a stream and the whole reply, for chats and for text completions.

Plain dicts, one per chunk: a checked model per token would cost more than the rest of the server. Server thread.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.api import FinishReason, TokenDelta, TokenLogprob, Usage
from studio.server.errors import request_cancelled

Json = dict[str, Any]

_FINISH_WORDS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_calls",
}

MIN_LOGPROB = -9999.0
"""Stands for minus infinity, which JSON has no word for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyHead:
    """What every chunk of a reply repeats."""

    reply_id: str
    created_s: int
    model: str


def new_reply_head(prefix: str, model: str) -> ReplyHead:
    """A head with a fresh id, like `chatcmpl-...`."""
    return ReplyHead(
        reply_id=f"{prefix}-{uuid.uuid4().hex}", created_s=int(time.time()), model=model
    )


@dataclass(slots=True)
class ChoiceText:
    """One choice being put together for a whole reply."""

    text: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    reason: FinishReason = FinishReason.STOP
    usage: Usage | None = None


class ReplyShape(Protocol):
    """How one kind of reply looks on the wire."""

    def opening(self, index: int) -> Json | None:
        """The chunk before a choice's first text, if this kind of reply has one."""

    def delta(self, index: int, event: TokenDelta) -> Json:
        """New text of a choice."""

    def empty_delta(self, index: int) -> Json:
        """No text: a sign of life."""

    def closing(self, index: int, reason: FinishReason) -> Json:
        """The end of a choice."""

    def usage_chunk(self, usage: Json) -> Json:
        """The chunk after the last choice, if the client asked for it."""

    def whole(self, choices: Sequence[ChoiceText], usage: Json) -> Json:
        """The reply in one piece."""


class ChatReply:
    """chat.completion and its chunks."""

    def __init__(self, head: ReplyHead, *, has_logprobs: bool) -> None:
        self._head = head
        self._has_logprobs = has_logprobs

    def opening(self, index: int) -> Json | None:
        return self._chunk(index, {"role": "assistant", "content": ""}, None, None)

    def delta(self, index: int, event: TokenDelta) -> Json:
        return self._chunk(index, {"content": event.text}, self._logprobs(event.logprobs), None)

    def empty_delta(self, index: int) -> Json:
        return self._chunk(index, {"content": ""}, None, None)

    def closing(self, index: int, reason: FinishReason) -> Json:
        return self._chunk(index, {}, None, finish_reason(reason))

    def usage_chunk(self, usage: Json) -> Json:
        return {**self._base("chat.completion.chunk"), "choices": [], "usage": usage}

    def whole(self, choices: Sequence[ChoiceText], usage: Json) -> Json:
        return {
            **self._base("chat.completion"),
            "choices": [
                {
                    "index": index,
                    "message": {
                        "role": "assistant",
                        "content": "".join(choice.text),
                        "refusal": None,
                    },
                    "logprobs": self._logprobs(choice.logprobs),
                    "finish_reason": finish_reason(choice.reason),
                }
                for index, choice in enumerate(choices)
            ],
            "usage": usage,
        }

    def _chunk(self, index: int, delta: Json, logprobs: Json | None, reason: str | None) -> Json:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return {**self._base("chat.completion.chunk"), "choices": [choice]}

    def _base(self, kind: str) -> Json:
        head = self._head
        return {"id": head.reply_id, "object": kind, "created": head.created_s, "model": head.model}

    def _logprobs(self, tokens: Iterable[TokenLogprob]) -> Json | None:
        if not self._has_logprobs:
            return None
        content = [
            {**_chat_token(token), "top_logprobs": [_chat_token(each) for each in token.top]}
            for token in tokens
        ]
        return {"content": content, "refusal": None}


class CompletionReply:
    """text_completion, whose chunks have the same shape as the whole."""

    def __init__(self, head: ReplyHead, *, has_logprobs: bool) -> None:
        self._head = head
        self._has_logprobs = has_logprobs
        self._offsets: dict[int, int] = {}

    def opening(self, index: int) -> Json | None:
        return None

    def delta(self, index: int, event: TokenDelta) -> Json:
        return self._of([self._choice(index, event.text, event.logprobs, None)])

    def empty_delta(self, index: int) -> Json:
        return self._of([self._choice(index, "", (), None)])

    def closing(self, index: int, reason: FinishReason) -> Json:
        return self._of([self._choice(index, "", (), finish_reason(reason))])

    def usage_chunk(self, usage: Json) -> Json:
        return {**self._of([]), "usage": usage}

    def whole(self, choices: Sequence[ChoiceText], usage: Json) -> Json:
        wire = [
            self._choice(index, "".join(choice.text), choice.logprobs, finish_reason(choice.reason))
            for index, choice in enumerate(choices)
        ]
        return {**self._of(wire), "usage": usage}

    def _of(self, choices: list[Json]) -> Json:
        head = self._head
        return {
            "id": head.reply_id,
            "object": "text_completion",
            "created": head.created_s,
            "model": head.model,
            "choices": choices,
        }

    def _choice(
        self, index: int, text: str, tokens: Sequence[TokenLogprob], reason: str | None
    ) -> Json:
        logprobs = self._logprobs(index, tokens) if self._has_logprobs and tokens else None
        return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def _logprobs(self, index: int, tokens: Sequence[TokenLogprob]) -> Json:
        """Four parallel lists; offsets are in characters of the reply, counted on from chunk to chunk."""
        offset = self._offsets.get(index, 0)
        offsets = []
        for token in tokens:
            offsets.append(offset)
            offset += len(token.text)
        self._offsets[index] = offset
        return {
            "tokens": [token.text for token in tokens],
            "token_logprobs": [_finite(token.logprob) for token in tokens],
            "top_logprobs": [
                {each.text: _finite(each.logprob) for each in token.top} for token in tokens
            ],
            "text_offset": offsets,
        }


def finish_reason(reason: FinishReason) -> str:
    """The word for a normal end; raises ApiError for a request that was stopped from elsewhere."""
    if reason is FinishReason.ABORTED:
        raise request_cancelled()
    return _FINISH_WORDS[reason]


def total_usage(usages: Sequence[Usage], choices_per_prompt: int) -> Json:
    """The cost of all choices; the choices of one prompt count its tokens once."""
    prompts = usages[::choices_per_prompt]
    prompt_tokens = sum(usage.prompt_tokens for usage in prompts)
    completion_tokens = sum(usage.completion_tokens for usage in usages)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in prompts)},
    }


def park_record(usages: Sequence[Usage]) -> Json:
    """How often the choices were parked, and how often the state was dropped, all together."""
    return {
        "parks": sum(usage.num_parks for usage in usages),
        "recomputes": sum(usage.num_recomputes for usage in usages),
    }


def _chat_token(token: TokenLogprob) -> Json:
    return {
        "token": token.text,
        "logprob": _finite(token.logprob),
        "bytes": list(token.token_bytes),
    }


def _finite(logprob: float) -> float:
    return logprob if math.isfinite(logprob) else MIN_LOGPROB
