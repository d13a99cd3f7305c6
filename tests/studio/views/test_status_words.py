"""Every state has a shape and words; nothing is told by colour alone."""

from __future__ import annotations

import pytest

from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, Message, MessageStatus, ReplyStats, Role
from studio.models.length_limit import LengthLimit
from studio.views.status_words import Mark, Tone, describe_chat, describe_reply


def reply(
    status: MessageStatus,
    *,
    note: str = "",
    stats: ReplyStats | None = None,
    reread_tokens: int = 0,
) -> Message:
    made = Message(2, 1, Role.ASSISTANT, "text", 0.0, status, note)
    made.stats = stats or ReplyStats()
    made.reread_tokens = reread_tokens
    return made


def chat_with(message: Message | None, *, has_unread: bool = False) -> Conversation:
    chat = Conversation(1, "Lisbon", 0.0, 0.0, has_unread=has_unread)
    chat.messages = [message] if message else []
    return chat


@pytest.mark.parametrize(
    ("message", "mark", "text"),
    [
        (reply(MessageStatus.QUEUED), Mark.DOTS, "Queued"),
        (reply(MessageStatus.READING), Mark.PIE, "Reading the prompt"),
        (
            reply(MessageStatus.READING, reread_tokens=900),
            Mark.PIE,
            "Re-reading 900 tokens",
        ),
        (reply(MessageStatus.WRITING), Mark.DOT, "Writing"),
        (
            reply(MessageStatus.WRITING, stats=ReplyStats(tokens_per_s=42.3)),
            Mark.DOT,
            "Writing · 42 tok/s",
        ),
        (reply(MessageStatus.PARKED), Mark.BARS, "Parked"),
        (reply(MessageStatus.INTERRUPTED), Mark.BROKEN_RING, "Interrupted when Layby closed"),
        (
            reply(MessageStatus.INTERRUPTED, note="waits for its model"),
            Mark.BROKEN_RING,
            "Interrupted · waits for its model",
        ),
        (reply(MessageStatus.FAILED, note="out of memory"), Mark.CROSS, "Failed · out of memory"),
        (reply(MessageStatus.STOPPED), Mark.SQUARE, "Stopped"),
        (reply(MessageStatus.LENGTH), Mark.SQUARE, "Ended at the length limit"),
        (
            reply(MessageStatus.LENGTH, note=LengthLimit.POOL.value),
            Mark.SQUARE,
            "Ended at the limit of the pool",
        ),
    ],
)
def test_states_in_words(message: Message, mark: Mark, text: str) -> None:
    words = describe_reply(message)
    assert (words.mark, words.text) == (mark, text)


def test_reading_tells_how_far() -> None:
    message = reply(MessageStatus.READING, stats=ReplyStats(prompt_tokens=3400))
    message.progress = 1200 / 3400
    words = describe_reply(message)
    assert words.text == "Reading 1,200 of 3,400 tokens"
    assert words.progress == pytest.approx(0.353, abs=0.001)


def test_a_finished_reply_shows_its_figures() -> None:
    stats = ReplyStats(completion_tokens=312, tokens_per_s=11.84, first_token_s=0.93, parked_s=8.2)
    text = describe_reply(reply(MessageStatus.DONE, stats=stats)).text
    assert text == "312 tokens · 11.8 tok/s · parked 8.2 s · first token 0.9 s"
    assert describe_reply(reply(MessageStatus.DONE)).text == ""


def test_every_status_has_words_and_red_is_only_for_what_failed() -> None:
    for status in MessageStatus:
        words = describe_reply(reply(status, stats=ReplyStats(completion_tokens=1)))
        assert words.text
        assert (words.tone is Tone.FAILED) == (status is MessageStatus.FAILED)


def test_a_chat_says_what_its_reply_does_or_that_it_is_done_or_when_it_was_used() -> None:
    now_s = 3600.0
    assert describe_chat(chat_with(reply(MessageStatus.WRITING)), now_s).mark is Mark.DOT
    assert describe_chat(chat_with(reply(MessageStatus.FAILED)), now_s).mark is Mark.CROSS
    done = reply(MessageStatus.DONE)
    assert describe_chat(chat_with(done, has_unread=True), now_s).text == "Done"
    cut = describe_chat(chat_with(reply(MessageStatus.LENGTH), has_unread=True), now_s)
    assert (cut.mark, cut.text) == (Mark.RING_DOT, "Ended at the length limit")
    assert describe_chat(chat_with(done), now_s).mark is Mark.NONE
    assert describe_chat(chat_with(None), now_s).text


def test_what_is_typed_and_not_sent_is_told_by_its_beginning() -> None:
    chat = chat_with(None)
    chat.draft = " \n"
    assert not describe_chat(chat, 60.0).text.startswith("Draft")
    chat.draft = "Dear\n\u202eall, " + "x" * 1000
    assert describe_chat(chat, 60.0).text.startswith("Draft: Dear all, xxx")
    assert len(describe_chat(chat, 60.0).text) < 100
    chat.draft = ""
    chat.draft_attachments = (Attachment(name="note.txt", kind=AttachmentKind.TEXT),)
    assert describe_chat(chat, 60.0).text == "Draft: note.txt"
    chat.messages = [reply(MessageStatus.DONE)]
    assert describe_chat(chat, 60.0).text == "Draft: note.txt", "beside what was said too"
