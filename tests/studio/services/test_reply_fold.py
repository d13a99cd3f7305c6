"""The figures under a reply: time to the first token, tokens per second, parked time apart from both."""

from __future__ import annotations

import pytest

from engine.api import (
    Finished,
    FinishReason,
    Parked,
    PromptProgress,
    Restored,
    Started,
    TokenDelta,
    Usage,
)
from engine.runs import ParkCause, ParkReason
from studio.models.chat import Message, MessageStatus, Park, Role
from studio.services.reply_fold import ReplyFold

ID = "r"
REASON = ParkReason(cause=ParkCause.PAGES_SHORT)


@pytest.fixture
def message() -> Message:
    return Message(2, 1, Role.ASSISTANT, "", 100.0, status=MessageStatus.QUEUED)


def parked(place: int) -> Parked:
    return Parked(request_id=ID, held_tokens=9, place=place, reason=REASON)


def tokens(text: str, count: int) -> TokenDelta:
    return TokenDelta(request_id=ID, text=text, token_ids=tuple(range(count)))


def test_the_first_token_is_timed_from_the_asking(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(Started(request_id=ID, prompt_tokens=40, cached_tokens=10, queued_s=1.0), 101.0)
    assert (message.stats.prompt_tokens, message.stats.cached_tokens, message.progress) == (
        40,
        10,
        0.25,
    )
    fold.apply(tokens("Hi", 1), 103.5)
    assert message.stats.first_token_s == 3.5
    assert message.stats.tokens_per_s is None


def test_tokens_that_come_at_once_are_no_rate(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(tokens("a", 1), 101.0)
    fold.apply(tokens("b", 10), 101.0001)
    assert message.stats.tokens_per_s is None
    fold.apply(tokens("c", 10), 102.0)
    assert message.stats.tokens_per_s == 20.0


def test_the_rate_counts_tokens_after_the_first_and_no_parked_time(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(tokens("a", 1), 101.0)
    fold.apply(tokens("b", 10), 102.0)
    assert message.stats.tokens_per_s == 10.0
    fold.apply(parked(place=1), 102.0)
    fold.apply(Restored(request_id=ID, parked_s=50.0, recomputed_tokens=0), 152.0)
    assert message.status is MessageStatus.WRITING
    fold.apply(tokens("c", 10), 153.0)
    assert message.stats.tokens_per_s == 10.0
    assert message.stats.parked_s == 50.0


def test_the_present_speed_is_that_of_the_last_seconds(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(tokens("a", 1), 101.0)
    fold.apply(tokens("b", 80), 102.0)
    assert message.speed is None
    fold.apply(tokens("c", 80), 103.0)
    assert message.speed == 80.0
    for now_s in (104.0, 105.0):  # slower since others came
        fold.apply(tokens("d", 5), now_s)
    assert message.speed == 5.0
    fold.apply(parked(place=1), 105.0)
    fold.apply(Restored(request_id=ID, parked_s=50.0, recomputed_tokens=0), 155.0)
    fold.apply(tokens("e", 4), 156.0)
    assert message.speed is None, "time outside the pool is no writing time"
    fold.apply(tokens("f", 30), 159.0)
    assert message.speed == 10.0


def test_time_parked_before_the_first_token_is_no_part_of_the_writing(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(parked(place=3), 100.0)
    assert message.park == Park(since_s=100.0, reason=REASON)
    assert message.status.is_alive
    fold.apply(Restored(request_id=ID, parked_s=20.0, recomputed_tokens=0), 120.0)
    assert (message.status, message.park) == (MessageStatus.READING, None)
    fold.apply(tokens("a", 1), 121.0)
    fold.apply(tokens("b", 4), 123.0)
    assert message.stats.tokens_per_s == 2.0


def test_one_that_is_gone_on_with_still_reads_after_a_park_before_its_first_token(
    message: Message,
) -> None:
    message.text, message.stats.completion_tokens = "so far", 3
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(Started(request_id=ID, prompt_tokens=40, cached_tokens=0, queued_s=0.0), 100.0)
    fold.apply(parked(place=1), 100.5)
    fold.apply(Restored(request_id=ID, parked_s=1.0, recomputed_tokens=0), 101.5)
    assert message.status is MessageStatus.READING
    fold.apply(tokens("and on", 2), 102.0)
    fold.apply(parked(place=1), 102.0)
    fold.apply(Restored(request_id=ID, parked_s=1.0, recomputed_tokens=0), 103.0)
    assert message.status is MessageStatus.WRITING


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (FinishReason.STOP, MessageStatus.DONE),
        (FinishReason.LENGTH, MessageStatus.LENGTH),
        (FinishReason.ABORTED, MessageStatus.STOPPED),
    ],
)
def test_the_engines_own_figures_stand_at_the_end(
    message: Message, reason: FinishReason, status: MessageStatus
) -> None:
    usage = Usage(
        prompt_tokens=40,
        cached_tokens=32,
        completion_tokens=21,
        queued_s=0.0,
        prefill_s=0.5,
        decode_s=4.0,
        parked_s=7.0,
    )
    ReplyFold(message, asked_s=100.0).apply(
        Finished(request_id=ID, reason=reason, usage=usage), 200.0
    )
    stats = message.stats
    assert message.status is status
    assert (stats.prompt_tokens, stats.cached_tokens, stats.completion_tokens) == (40, 32, 21)
    assert (stats.tokens_per_s, stats.parked_s) == (5.0, 7.0)


def test_progress_of_a_prompt_without_tokens_is_zero(message: Message) -> None:
    fold = ReplyFold(message, asked_s=0.0)
    fold.apply(PromptProgress(request_id=ID, computed_tokens=0, prompt_tokens=0), 1.0)
    assert message.progress == 0.0


def test_thinking_is_timed_without_parked_time(message: Message) -> None:
    fold = ReplyFold(message, asked_s=100.0)
    fold.apply(tokens("<think>Hm", 1), 101.0)
    fold.apply(parked(place=1), 102.0)
    fold.apply(Restored(request_id=ID, parked_s=50.0, recomputed_tokens=0), 152.0)
    fold.apply(tokens(", so.", 2), 153.0)
    assert message.stats.thought_s is None
    fold.apply(tokens("</think>", 1), 155.0)
    assert message.stats.thought_s == 4.0
    fold.apply(tokens(" The answer.", 3), 160.0)
    assert message.stats.thought_s == 4.0
