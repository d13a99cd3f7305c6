"""How a reply or a chat stands, as a shape, words and a tone: the only place that puts states into words.

Pure functions on the GUI thread. Must not import services or widgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from engine.api import EngineSnapshot
from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus
from studio.models.tool_use import ToolUseState
from studio.views.words import count, plural, rate, seconds, tokens, tr, when

SEPARATOR = " · "


class Mark(Enum):
    """The shape of a state."""

    NONE = "none"
    DOT = "dot"
    """Writing."""
    PIE = "pie"
    """Reading: a ring that fills."""
    DOTS = "dots"
    """Queued."""
    BARS = "bars"
    """Waiting for room."""
    HAND = "hand"
    """Waiting for the user."""
    CHECK = "check"
    """Done."""
    TURN = "turn"
    """Coming back: a ring with an arrow's head."""
    RING_DOT = "ring_dot"
    """Done, not seen yet."""
    SQUARE = "square"
    """Stopped."""
    BROKEN_RING = "broken_ring"
    """Interrupted."""
    CROSS = "cross"
    """Failed."""


class Tone(Enum):
    """The colour of a state: never the only thing that tells it."""

    QUIET = "quiet"
    ACTIVE = "active"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StatusWords:
    """`progress` is 0 to 1 and only drawn for PIE."""

    mark: Mark
    text: str
    tone: Tone = Tone.QUIET
    progress: float = 0.0


def title_words(chat: Conversation) -> str:
    """A chat's title; what it is called before its first prompt in the user's language."""
    return tr("New chat") if chat.title == NEW_CHAT_TITLE else chat.title


def work_parts(snapshot: EngineSnapshot) -> list[str]:
    """ "2 running", "1 queued", "1 parked"; only what there is."""
    parts = (
        (snapshot.running, plural(snapshot.running, "1 running", "{count} running")),
        (snapshot.waiting, plural(snapshot.waiting, "1 queued", "{count} queued")),
        (snapshot.parked, plural(snapshot.parked, "1 parked", "{count} parked")),
    )
    return [words for number, words in parts if number]


def describe_reply(message: Message) -> StatusWords:
    """What stands under a reply."""
    status = message.status
    match status:
        case MessageStatus.QUEUED:
            return StatusWords(Mark.DOTS, tr("Queued"), Tone.WAITING)
        case MessageStatus.READING:
            return StatusWords(Mark.PIE, _reading(message), Tone.ACTIVE, message.progress)
        case MessageStatus.WRITING:
            return StatusWords(Mark.DOT, joined(tr("Writing"), _speed_now(message)), Tone.ACTIVE)
        case MessageStatus.PARKED:
            return StatusWords(Mark.BARS, tr("Parked"), Tone.WAITING)
        case MessageStatus.TOOLS:
            return _tools(message)
        case MessageStatus.DONE:
            return StatusWords(Mark.NONE, figures(message))
        case MessageStatus.STOPPED:
            return StatusWords(Mark.SQUARE, joined(tr("Stopped"), figures(message)))
        case MessageStatus.LENGTH:
            text = joined(_ended_by_length(message.note), figures(message))
            return StatusWords(Mark.SQUARE, text, Tone.WAITING)
        case MessageStatus.INTERRUPTED:
            return _interrupted(message.note)
        case MessageStatus.FAILED:
            return _failed(message.note)
    assert_never(status)


def describe_state(message: Message) -> StatusWords:
    """The same without the speed while it is being written, which each token changes."""
    if message.status is MessageStatus.WRITING:
        return StatusWords(Mark.DOT, tr("Writing"), Tone.ACTIVE)
    return describe_reply(message)


def describe_chat(chat: Conversation, now_s: float) -> StatusWords:
    """What stands under a chat's title in the list: what its last reply does, or when it was last used."""
    last = chat.messages[-1] if chat.messages else None
    if last is not None and last.status.is_alive:
        return describe_reply(last)
    if chat.last_status is MessageStatus.TOOLS:
        return StatusWords(Mark.HAND, tr("Waiting for your answer"), Tone.WAITING)
    if chat.last_status is MessageStatus.INTERRUPTED:
        return _interrupted(chat.last_note)
    if chat.last_status is MessageStatus.FAILED:
        return _failed(chat.last_note)
    if chat.queued is not None:
        waits = tr("A message waits to be sent")
        words = tr("A message is too long to be sent") if chat.queued.is_too_long else waits
        return StatusWords(Mark.DOTS, words, Tone.WAITING)
    if chat.has_unread and chat.last_status is MessageStatus.LENGTH:
        text = _ended_by_length(chat.last_note)
        return StatusWords(Mark.RING_DOT, text, Tone.WAITING)
    if chat.has_unread:
        return StatusWords(Mark.RING_DOT, tr("Done"), Tone.ACTIVE)
    if chat.is_temporary:
        return StatusWords(Mark.NONE, tr("Temporary, not saved"))
    if chat.draft_beginning:
        return StatusWords(Mark.NONE, tr("Draft: {text}").format(text=chat.draft_beginning))
    return StatusWords(Mark.NONE, when(chat.updated_s, now_s))


def figures(message: Message) -> str:
    """The figures of a reply: "312 tokens · 11.8 tok/s · parked 8.2 s · first token 0.9 s"; empty if none is known."""
    stats = message.stats
    parts = []
    if stats.completion_tokens is not None:
        parts.append(tokens(stats.completion_tokens))
    if stats.tokens_per_s:
        parts.append(_at(stats.tokens_per_s))
    if stats.parked_s:
        parts.append(tr("parked {time}").format(time=seconds(stats.parked_s)))
    if stats.first_token_s is not None:
        parts.append(tr("first token {time}").format(time=seconds(stats.first_token_s)))
    return joined(*parts)


def details(message: Message) -> str:
    """All that is known of a reply that has ended, a line each, why it ended at last."""
    stats = message.stats
    lines = []
    if stats.prompt_tokens is not None:
        known = stats.cached_tokens or 0
        words = tr("{tokens} read, {known} of them known before")
        lines.append(words.format(tokens=tokens(stats.prompt_tokens), known=count(known)))
    lines.append(figures(message))
    if stats.thought_s is not None:
        lines.append(tr("Thought for {time}").format(time=seconds(stats.thought_s)))
    lines.append(describe_end(message))
    return "\n".join(line for line in lines if line)


def describe_end(message: Message) -> str:
    """Why a reply ended; empty while it has not."""
    status = MessageStatus
    return {
        status.DONE: tr("The model ended it"),
        status.STOPPED: tr("Stopped by you"),
        status.LENGTH: _ended_by_length(message.note),
        status.INTERRUPTED: _interrupted(message.note).text,
        status.FAILED: tr(message.note),
    }.get(message.status, "")


def _tools(message: Message) -> StatusWords:
    if message.is_asking:
        return StatusWords(Mark.HAND, tr("Waiting for your answer"), Tone.WAITING)
    running = [use for use in message.calls if use.state is ToolUseState.RUNNING]
    if len(running) == 1:
        words = tr("Running {tool}").format(tool=running[0].tool)
        return StatusWords(Mark.TURN, words, Tone.ACTIVE)
    return StatusWords(Mark.TURN, tr("Running tools"), Tone.ACTIVE)


def _ended_by_length(note: str) -> str:
    return tr(note) if note else tr("Ended at the length limit")


def _interrupted(note: str) -> StatusWords:
    text = joined(tr("Interrupted"), tr(note)) if note else tr("Interrupted when Layby closed")
    return StatusWords(Mark.BROKEN_RING, text, Tone.WAITING)


def _failed(note: str) -> StatusWords:
    return StatusWords(Mark.CROSS, joined(tr("Failed"), tr(note)), Tone.FAILED)


def _reading(message: Message) -> str:
    if message.reread_tokens:
        return tr("Re-reading {tokens}").format(tokens=tokens(message.reread_tokens))
    total = message.stats.prompt_tokens
    if total is None:
        return tr("Reading the prompt")
    done = round(message.progress * total)
    return tr("Reading {done} of {total} tokens").format(done=count(done), total=count(total))


def _speed_now(message: Message) -> str:
    speed = message.speed or message.stats.tokens_per_s
    return _at(speed) if speed else ""


def _at(speed: float) -> str:
    return tr("{speed} tok/s").format(speed=rate(speed))


def joined(*parts: str) -> str:
    """The parts that are not empty, with a dot between them."""
    return SEPARATOR.join(part for part in parts if part)
