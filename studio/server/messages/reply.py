"""Engine events -> Anthropic's message, in one piece and as its events: a block for each part. Server thread."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import from_json

from engine.api import Finished, FinishReason, Started, TokenDelta
from engine.errors import EngineError
from studio.server.errors import ApiError
from studio.server.framing import NAMED_EVENTS, Framing, Json
from studio.server.messages.errors import error_body
from studio.server.replies import ReplyHead
from studio.server.reply_parts import Part, PartKind, PartStep, ReplyParts, StepKind
from studio.server.reply_shape import ReplyEnd

_STOP_REASONS = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
}

_SIGNED: Json = {"type": "signature_delta", "signature": ""}
"""Clients wait for it at the end of thoughts; nothing here would check one that came back."""


class MessagesReply:
    """One message; there is always one choice."""

    def __init__(self, head: ReplyHead, *, shows_thinking: bool, request_id: str) -> None:
        self._head = head
        self._shows_thinking = shows_thinking
        self._request_id = request_id
        self._parts = ReplyParts()

    @property
    def framing(self) -> Framing:
        return NAMED_EVENTS

    def opening(self, index: int, started: Started | None) -> Sequence[Json]:
        prompt, cached = (started.prompt_tokens, started.cached_tokens) if started else (0, 0)
        usage = _usage(prompt, cached, 0)
        return ({"type": "message_start", "message": self._message([], None, usage)},)

    def delta(self, index: int, event: TokenDelta) -> Sequence[Json]:
        return self._tell(self._parts.add(event))

    def sign_of_life(self, index: int) -> Sequence[Json]:
        return ({"type": "ping"},)

    def closing(self, index: int, finished: Finished, end: ReplyEnd | None) -> Sequence[Json]:
        assert end is not None, "a message has one choice"
        last = {
            "type": "message_delta",
            "delta": _stop(finished),
            "usage": _usage_of(end),
            **end.park_fields,
        }
        return (*self._tell(self._parts.close()), last, {"type": "message_stop"})

    def failure(self, error: ApiError | EngineError) -> Sequence[Json]:
        return (error_body(error, self._request_id),)

    def whole(self, choices: Sequence[ReplyParts], end: ReplyEnd) -> Json:
        (reply,) = choices
        content = [self._block(part) for part in reply.parts]
        message = self._message(content, reply.finished, _usage_of(end))
        return {**message, **end.park_fields}

    def _message(self, content: list[Json], finished: Finished | None, usage: Json) -> Json:
        return {
            "id": self._head.reply_id,
            "type": "message",
            "role": "assistant",
            "model": self._head.model,
            "content": content,
            **_stop(finished),
            "usage": usage,
        }

    def _tell(self, steps: list[PartStep]) -> list[Json]:
        return [event for step in steps for event in self._events(step)]

    def _events(self, step: PartStep) -> list[Json]:
        number, is_thought = step.part.number, step.part.kind is PartKind.REASONING
        match step.kind:
            case StepKind.OPENED:
                block = _begun(step.part)
                return [{"type": "content_block_start", "index": number, "content_block": block}]
            case StepKind.CLOSED:
                end = {"type": "content_block_stop", "index": number}
                return [_delta(number, _SIGNED), end] if is_thought else [end]
        if not step.text or (is_thought and not self._shows_thinking):
            return []
        return [_delta(number, _grown(step))]

    def _block(self, part: Part) -> Json:
        block = _begun(part)
        match part.kind:
            case PartKind.TEXT:
                block["text"] = part.text
            case PartKind.REASONING if self._shows_thinking:
                block["thinking"] = part.text
            case PartKind.CALL:
                block["input"] = _arguments(part.text)
        return block


def _delta(number: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": number, "delta": delta}


def _begun(part: Part) -> Json:
    match part.kind:
        case PartKind.TEXT:
            return {"type": "text", "text": ""}
        case PartKind.REASONING:
            return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": {}}


def _grown(step: PartStep) -> Json:
    match step.part.kind:
        case PartKind.TEXT:
            return {"type": "text_delta", "text": step.text}
        case PartKind.REASONING:
            return {"type": "thinking_delta", "thinking": step.text}
    return {"type": "input_json_delta", "partial_json": step.text}


def _arguments(text: str) -> Json:
    """Of a call that was cut off: those that are there."""
    try:
        value = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _stop(finished: Finished | None) -> Json:
    if finished is None:
        return {"stop_reason": None, "stop_sequence": None}
    if finished.stop_text:
        return {"stop_reason": "stop_sequence", "stop_sequence": finished.stop_text}
    return {"stop_reason": _STOP_REASONS[finished.reason], "stop_sequence": None}


def _usage_of(end: ReplyEnd) -> Json:
    return _usage(end.prompt_tokens, end.cached_tokens, end.completion_tokens)


def _usage(prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> Json:
    """The three figures of input add up to the prompt."""
    return {
        "input_tokens": prompt_tokens - cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": completion_tokens,
    }
