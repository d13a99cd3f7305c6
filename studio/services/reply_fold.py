"""Folds the events of one request into the message that is its reply. No clock of its own, no thread, no Qt."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from engine.api import (
    Embedded,
    Failed,
    Finished,
    FinishReason,
    Parked,
    PromptProgress,
    PromptRead,
    RequestEvent,
    Restored,
    Resumed,
    Started,
    TokenDelta,
    ToolCallDelta,
)
from engine.errors import EngineError, ModelUnavailable, ResumeRefused, Suspended
from studio.models.chat import Message, MessageStatus, Park
from studio.models.thoughts import ThoughtSplitter
from studio.models.tool_use import ToolUse

NO_MODEL_WAS_READY = "no model was ready for it"
MODEL_WAS_UNLOADED = "its model was unloaded meanwhile"
_SPEED_S = 2.0
"""The present speed is measured over so long, at least."""
_SHORTEST_S = 0.05
"""A rate is told after so long: tokens that come together at the beginning would be tens of thousands a second."""
_ENDED_AS = {
    FinishReason.STOP: MessageStatus.DONE,
    FinishReason.LENGTH: MessageStatus.LENGTH,
    FinishReason.TOOL_CALLS: MessageStatus.TOOLS,
    FinishReason.ABORTED: MessageStatus.STOPPED,
}


class ReplyFold:
    """Owns a reply from the moment it is asked for until its terminal event.

    A reply that has text already is gone on with: its figures go on too. `resumes`: from the engine's state on disk,
    whose request counts what was written before as its own.
    """

    def __init__(self, message: Message, asked_s: float, *, resumes: bool = False) -> None:
        self._message = message
        self._is_coming_back = resumes
        """It is to go on with what an earlier request has written, and has not begun to."""
        is_continued = bool(message.text) and not resumes
        self._tokens_kept = (message.stats.completion_tokens or 0) if is_continued else 0
        """What earlier requests have written that this one knows nothing of."""
        self._parked_kept_s = message.stats.parked_s if is_continued else 0.0
        self._tokens_before = self._tokens_kept
        """What had been written before; no part of the speed measured now."""
        self._thoughts = ThoughtSplitter()
        self._thoughts.feed(message.text if is_continued else "")
        self._is_reasoning = False
        """What comes apart as reasoning has begun and not ended."""
        self._asked_s = asked_s
        self._first_token_at_s: float | None = None
        self._speed_from: tuple[float, int] | None = None
        """When the present speed began to be measured, and how many tokens there were."""
        self._parked_before_s = 0.0
        """Seconds parked before the first token; they are no part of the writing time."""

    def apply(self, event: RequestEvent, now_s: float) -> None:
        """Change status, text, progress and figures as the event says; also the note, once it has failed."""
        message = self._message
        match event:
            case Started():
                message.status = MessageStatus.READING
                message.stats.prompt_tokens = event.prompt_tokens
                message.stats.cached_tokens = event.cached_tokens
                message.prompt_share_tokens = self._tokens_kept
                message.progress = _share(event.cached_tokens, event.prompt_tokens)
            case PromptProgress():
                message.status = MessageStatus.READING
                message.progress = _share(event.computed_tokens, event.prompt_tokens)
            case TokenDelta():
                self._add_tokens(event, now_s)
            case Parked():
                message.status = MessageStatus.PARKED
                message.park = Park(since_s=now_s, reason=event.reason)
                message.speed = self._speed_from = None
            case Restored():
                self._come_back(event)
            case Resumed():
                self._is_coming_back = False
                self._asked_s = now_s
                self._tokens_before = len(event.token_ids)
                message.text = event.text
                self._thoughts = ThoughtSplitter()
                self._thoughts.feed(event.text)
                message.stats.completion_tokens = len(event.token_ids)
            case Finished():
                self._finish(event)
            case Failed():
                is_model_gone = isinstance(event.error, ModelUnavailable) and bool(message.text)
                is_kept = (
                    self._is_coming_back or is_model_gone or isinstance(event.error, Suspended)
                )
                message.status = MessageStatus.INTERRUPTED if is_kept else MessageStatus.FAILED
                end_park(message, now_s)
                message.note = _note_of(event.error, message)
            case PromptRead() | Embedded():
                pass  # nobody here asks for these
            case _:
                assert_never(event)

    def _add_tokens(self, event: TokenDelta, now_s: float) -> None:
        message, stats = self._message, self._message.stats
        message.status = MessageStatus.WRITING
        message.reread_tokens = 0
        text = self._text_of(event)
        message.text += text
        message.calls = with_calls(message.calls, event.tool_calls)
        had_thought = self._thoughts.has_thought
        self._thoughts.feed(text)
        stats.completion_tokens = (stats.completion_tokens or 0) + len(event.token_ids)
        self._measure_speed(stats.completion_tokens, now_s)
        if self._first_token_at_s is None:
            self._first_token_at_s = now_s
            self._parked_before_s = stats.parked_s
            if not self._tokens_before:
                stats.first_token_s = now_s - self._asked_s
            return
        writing_s = now_s - self._first_token_at_s - (stats.parked_s - self._parked_before_s)
        if self._thoughts.has_thought and not had_thought:
            stats.thought_s = (stats.thought_s or 0.0) + writing_s
        if writing_s >= _SHORTEST_S:
            stats.tokens_per_s = _rate(stats.completion_tokens - self._tokens_before, writing_s)

    def _measure_speed(self, num_tokens: int, now_s: float) -> None:
        if self._speed_from is None:
            self._speed_from = now_s, num_tokens
            return
        since_s, tokens_then = self._speed_from
        if now_s - since_s >= _SPEED_S:
            self._message.speed = (num_tokens - tokens_then) / (now_s - since_s)
            self._speed_from = now_s, num_tokens

    def _text_of(self, event: TokenDelta) -> str:
        """Reasoning that comes apart from the text stands in it between tags, like that of a model that writes them."""
        text = ""
        if event.reasoning:
            text = event.reasoning if self._is_reasoning else f"<think>\n{event.reasoning}"
            self._is_reasoning = True
        if self._is_reasoning and (event.text or event.tool_calls):
            self._is_reasoning = False
            text += "\n</think>\n\n"
        return text + event.text

    def _come_back(self, event: Restored) -> None:
        message = self._message
        message.stats.parked_s += event.parked_s
        message.park = None
        message.reread_tokens = event.recomputed_tokens
        has_written = (message.stats.completion_tokens or 0) > self._tokens_kept
        message.status = MessageStatus.WRITING if has_written else MessageStatus.READING
        if event.recomputed_tokens:
            message.status = MessageStatus.READING
            message.progress = 0.0

    def _finish(self, event: Finished) -> None:
        message, usage = self._message, event.usage
        message.status = _ENDED_AS[event.reason]
        if message.status is MessageStatus.TOOLS and not message.calls:
            message.status = MessageStatus.DONE
        if self._is_reasoning:
            message.text += "\n</think>\n"
        message.park = None
        message.stats.prompt_tokens = usage.prompt_tokens
        message.stats.cached_tokens = usage.cached_tokens
        message.stats.completion_tokens = self._tokens_kept + usage.completion_tokens
        new_tokens = message.stats.completion_tokens - self._tokens_before
        message.stats.tokens_per_s = _rate(new_tokens, usage.decode_s)
        message.stats.parked_s = self._parked_kept_s + usage.parked_s


def end_park(message: Message, now_s: float) -> None:
    """A reply that ends while it is parked was parked until now; nothing for any other."""
    if message.park is not None:
        message.stats.parked_s += max(now_s - message.park.since_s, 0.0)
        message.park = None


def with_calls(
    calls: tuple[ToolUse, ...], deltas: tuple[ToolCallDelta, ...]
) -> tuple[ToolUse, ...]:
    """The calls of a reply with what has been written more of them."""
    if not deltas:
        return calls
    grown = list(calls)
    for delta in deltas:
        while len(grown) <= delta.index:
            grown.append(ToolUse(call_id="", name="", arguments=""))
        use = grown[delta.index]
        grown[delta.index] = replace(
            use,
            call_id=use.call_id or delta.call_id,
            name=use.name + delta.name,
            arguments=use.arguments + delta.arguments,
        )
    return tuple(grown)


def _note_of(error: EngineError, message: Message) -> str:
    """Why it failed, in words that stay true: what is being loaded now is soon ready, and the note is kept."""
    if isinstance(error, ModelUnavailable):
        return MODEL_WAS_UNLOADED if message.text else NO_MODEL_WAS_READY
    return str(error)


def checked_comeback(event: RequestEvent, reply: Message) -> RequestEvent:
    """The event, or a refusal if the state that the engine goes on with is that of another reply."""
    if not isinstance(event, Resumed):
        return event
    if event.text.startswith(reply.text) or reply.text.startswith(event.text):
        return event
    error = ResumeRefused(
        "the state kept on disk is not that of this reply: its text is another one; send the prompt again"
    )
    return Failed(request_id=event.request_id, error=error, partial=True)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _rate(num_tokens: int, writing_s: float) -> float | None:
    """Tokens per second after the first, which belongs to the reading of the prompt; None while unknown."""
    return (num_tokens - 1) / writing_s if num_tokens > 1 and writing_s > 0 else None
