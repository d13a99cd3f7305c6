"""Engine events -> OpenAI's chat completions: the chunks of a stream and the whole reply.

Server thread.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.api import (
    Finished,
    FinishReason,
    Started,
    TokenDelta,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
)
from engine.errors import EngineError
from studio import __version__
from studio.server.errors import ApiError, error_body
from studio.server.framing import EVENTS, Framing, Json
from studio.server.reply_parts import PartKind, ReplyParts, ThoughtCount
from studio.server.reply_shape import ReplyEnd
from studio.server.tool_fields import wire_call

_FINISH_WORDS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_calls",
}

FINGERPRINT = f"layby-{__version__}"
"""By which clients tell servers apart whose replies to one seed may differ."""
MIN_LOGPROB = -9999.0
"""Stands for minus infinity, which JSON has no word for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyHead:
    """What every chunk of a reply repeats."""

    reply_id: str
    created_s: int
    model: str

    def fields(self, kind: str) -> Json:
        """As OpenAI's replies have them."""
        return {
            "id": self.reply_id,
            "object": kind,
            "created": self.created_s,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }


def new_reply_head(prefix: str, model: str, *, joint: str = "-") -> ReplyHead:
    """A head with a fresh id, like `chatcmpl-...`."""
    reply_id = f"{prefix}{joint}{uuid.uuid4().hex}"
    return ReplyHead(reply_id=reply_id, created_s=int(time.time()), model=model)


class ChatReply:
    """chat.completion and its chunks."""

    def __init__(
        self, head: ReplyHead, *, has_logprobs: bool, includes_usage: bool = False
    ) -> None:
        self._head = head
        self._has_logprobs = has_logprobs
        self._includes_usage = includes_usage
        self._thoughts: defaultdict[int, ThoughtCount] = defaultdict(ThoughtCount)
        """Of each choice of a stream."""

    @property
    def framing(self) -> Framing:
        return EVENTS

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        return (self._chunk(index, {"role": "assistant", "content": ""}, None, None),)

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        self._thoughts[index].add(event)
        deltas: list[Json] = []
        if event.reasoning:
            deltas.append({"reasoning_content": event.reasoning})
        if event.text:
            deltas.append({"content": event.text})
        deltas += [
            {"tool_calls": [each]} for call in event.tool_calls for each in call_deltas(call)
        ]
        first, *rest = deltas or [{"content": ""}]
        logprobs = self._logprobs(event.logprobs)
        return (
            self._chunk(index, first, logprobs, None),
            *(self._chunk(index, delta, None, None) for delta in rest),
        )

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return (self._chunk(index, {"content": ""}, None, None),)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        chunk = self._chunk(index, {}, None, finish_reason(finished.reason))
        base = {**self._base("chat.completion.chunk"), "choices": []}
        if not self._includes_usage:
            return closing_chunks(chunk, end)
        thoughts = sum(count.tokens for count in self._thoughts.values())
        return closing_chunks(chunk, end, base, reasoning_tokens=thoughts)

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return (error_body(error),)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        return {
            **self._base("chat.completion"),
            "choices": [
                {
                    "index": index,
                    "message": _message(choice),
                    "logprobs": self._logprobs(choice.logprobs),
                    "finish_reason": finish_reason(choice.reason),
                }
                for index, choice in enumerate(choices)
            ],
            "usage": total_usage(end, sum(choice.reasoning_tokens for choice in choices)),
            **end.park_fields,
        }

    def _chunk(self, index: int, delta: Json, logprobs: Json | None, reason: str | None) -> Json:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        chunk = {**self._base("chat.completion.chunk"), "choices": [choice]}
        return {**chunk, "usage": None} if self._includes_usage else chunk

    def _base(self, kind: str) -> Json:
        return self._head.fields(kind)

    def _logprobs(self, tokens: Iterable[TokenLogprob]) -> Json | None:
        if not self._has_logprobs:
            return None
        return {"content": chat_logprobs(tokens), "refusal": None}


def _message(choice: ReplyParts) -> Json:
    """What the assistant says: reasoning and calls only where there are some, null for no text beside calls."""
    calls = [ToolCall(call_id=c.call_id, name=c.name, arguments=c.text) for c in choice.calls]
    text = choice.text_of(PartKind.TEXT)
    message: Json = {
        "role": "assistant",
        "content": text or (None if calls else ""),
        "refusal": None,
    }
    if reasoning := choice.text_of(PartKind.REASONING):
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [wire_call(call) for call in calls]
    return message


def call_deltas(call: ToolCallDelta) -> list[Json]:
    """More of a call: first its id and name, then pieces of its arguments."""
    deltas: list[Json] = []
    if call.name:
        begun = wire_call(ToolCall(call_id=call.call_id, name=call.name, arguments=""))
        deltas.append({"index": call.index, **begun})
    if call.arguments:
        deltas.append({"index": call.index, "function": {"arguments": call.arguments}})
    return deltas


def finish_reason(reason: FinishReason) -> str:
    """The word for an end that was no abort."""
    return _FINISH_WORDS[reason]


def chat_logprobs(tokens: Iterable[TokenLogprob]) -> list[Json]:
    """An object for each token, with its alternatives inside."""
    return [
        {**_chat_token(token), "top_logprobs": [_chat_token(each) for each in token.top]}
        for token in tokens
    ]


def closing_chunks(
    chunk: Json, end: ReplyEnd | None, base: Json | None = None, *, reasoning_tokens: int = 0
) -> Sequence[Json]:
    """The last chunk of a choice; after that of the last choice, `base` with the usage, where that is given.

    The last of all has the record of parks.
    """
    if end is None:
        return (chunk,)
    if base is None:
        return ({**chunk, **end.park_fields},)
    return (chunk, {**base, "usage": total_usage(end, reasoning_tokens), **end.park_fields})


def total_usage(end: ReplyEnd, reasoning_tokens: int = 0) -> Json:
    """The cost of all choices."""
    return {
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.completion_tokens,
        "total_tokens": end.prompt_tokens + end.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": end.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    }


def _chat_token(token: TokenLogprob) -> Json:
    return {
        "token": token.text,
        "logprob": finite(token.logprob),
        "bytes": list(token.token_bytes),
    }


def finite(logprob: float) -> float:
    """The log probability as JSON has it."""
    return logprob if math.isfinite(logprob) else MIN_LOGPROB
