"""Engine events -> Ollama's replies, of chats and of prompts: a line of JSON for each piece, or one object.

Server thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum

from pydantic_core import from_json

from engine.api import Finished, FinishReason, Started, TokenDelta, TokenLogprob, Usage
from engine.errors import EngineError
from studio.server.errors import ApiError, request_cancelled
from studio.server.framing import LINES, Framing, Json
from studio.server.ollama.errors import error_body
from studio.server.replies import finite
from studio.server.reply_parts import Part, PartKind, PartStep, ReplyParts, StepKind
from studio.server.reply_shape import ReplyEnd

_DONE_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.TOOL_CALLS: "stop",
    FinishReason.LENGTH: "length",
}
_NS = 1_000_000_000


class Telling(Enum):
    """Under which field a reply's text stands."""

    CHAT = "message"
    GENERATE = "response"


class OllamaReply:
    """One reply; there is always one choice."""

    def __init__(self, model: str, telling: Telling) -> None:
        self._model = model
        self._telling = telling
        self._parts = ReplyParts()

    @property
    def framing(self) -> Framing:
        return LINES

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        return ()

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        return self._tell(self._parts.add(event), event.logprobs)

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return (self._line(),)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        assert end is not None, "a reply has one choice"
        last = {**self._line(), **_end(finished), **end.park_fields}
        return (*self._tell(self._parts.close(), ()), last)

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return (error_body(error),)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        (reply,) = choices
        assert reply.finished is not None
        line = self._line(
            text=reply.text_of(PartKind.TEXT),
            thinking=reply.text_of(PartKind.REASONING),
            calls=[_call(part) for part in reply.calls],
            logprobs=reply.logprobs,
        )
        return {**line, **_end(reply.finished), **end.park_fields}

    def loaded(self) -> Json:
        """The answer to a request without a prompt, once the model is there."""
        return {**self._line(), "done": True, "done_reason": "load"}

    def unloaded(self) -> Json:
        """The answer to a request without a prompt that lets the model go."""
        return {**self._line(), "done": True, "done_reason": "unload"}

    def _tell(self, steps: list[PartStep], logprobs: Sequence[TokenLogprob]) -> list[Json]:
        """A call is told whole, once it has ended; its tokens' log probabilities go with a line of their own."""
        lines = []
        for step in steps:
            kind = step.part.kind
            if step.kind is StepKind.GREW and kind is not PartKind.CALL and step.text:
                is_text = kind is PartKind.TEXT
                lines.append(
                    self._line(text=step.text) if is_text else self._line(thinking=step.text)
                )
            elif step.kind is StepKind.CLOSED and kind is PartKind.CALL:
                lines.append(self._line(calls=[_call(step.part)]))
        if logprobs:
            lines = lines or [self._line()]
            lines[0]["logprobs"] = [_logprob(token) for token in logprobs]
        return lines

    def _line(
        self,
        *,
        text: str = "",
        thinking: str = "",
        calls: list[Json] | None = None,
        logprobs: Sequence[TokenLogprob] = (),
    ) -> Json:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        line: Json = {"model": self._model, "created_at": now}
        if self._telling is Telling.CHAT:
            message: Json = {"role": "assistant", "content": text}
            if thinking:
                message["thinking"] = thinking
            if calls:
                message["tool_calls"] = calls
            line["message"] = message
        else:
            line["response"] = text
            if thinking:
                line["thinking"] = thinking
        if logprobs:
            line["logprobs"] = [_logprob(token) for token in logprobs]
        return {**line, "done": False}


def _end(finished: Finished) -> Json:
    """The last fields. Raises ApiError for a request that was stopped from elsewhere."""
    if finished.reason is FinishReason.ABORTED:
        raise request_cancelled()
    return {"done": True, "done_reason": _DONE_REASONS[finished.reason], **_figures(finished.usage)}


def _figures(usage: Usage) -> Json:
    """Durations are nanoseconds. Waiting, in line and parked, is in the total alone."""
    total_s = usage.queued_s + usage.prefill_s + usage.decode_s + usage.parked_s
    return {
        "total_duration": int(total_s * _NS),
        "load_duration": 0,
        "prompt_eval_count": usage.prompt_tokens,
        "prompt_eval_duration": int(usage.prefill_s * _NS),
        "eval_count": usage.completion_tokens,
        "eval_duration": int(usage.decode_s * _NS),
    }


def _call(part: Part) -> Json:
    function = {"index": part.call_index, "name": part.name, "arguments": _arguments(part.text)}
    return {"id": part.call_id, "function": function}


def _arguments(text: str) -> Json:
    """An object, in this protocol; of a call that was cut off those that are there."""
    try:
        value = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _logprob(token: TokenLogprob) -> Json:
    return {**_bare(token), "top_logprobs": [_bare(each) for each in token.top]}


def _bare(token: TokenLogprob) -> Json:
    return {
        "token": token.text,
        "logprob": finite(token.logprob),
        "bytes": list(token.token_bytes),
    }
