"""What the engine is asked, and what a chat is called."""

from __future__ import annotations

import pytest

from engine.api import Origin, Priority, SamplingParams
from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.models.chat_settings import ChatSettings
from studio.services.chat_prompt import prompt_for, request_for, title_for

S = MessageStatus


def a_chat(*turns: tuple[Role, str, MessageStatus], system_prompt: str = "") -> Conversation:
    messages = [
        Message(message_id=number, chat_id=7, role=role, text=text, created_s=0.0, status=status)
        for number, (role, text, status) in enumerate(turns)
    ]
    return Conversation(
        7, "title", 0.0, 0.0, settings=ChatSettings(system_prompt=system_prompt), messages=messages
    )


def turns_of(chat: Conversation) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in prompt_for(chat).messages]


def test_system_prompt_and_turns_in_order_without_the_running_reply() -> None:
    chat = a_chat(
        (Role.USER, "hello", S.DONE),
        (Role.ASSISTANT, "hi", S.DONE),
        (Role.USER, "more", S.DONE),
        (Role.ASSISTANT, "", S.QUEUED),
        system_prompt="Be brief.",
    )
    assert turns_of(chat) == [
        ("system", "Be brief."),
        ("user", "hello"),
        ("assistant", "hi"),
        ("user", "more"),
    ]


@pytest.mark.parametrize("status", [S.DONE, S.STOPPED, S.LENGTH, S.INTERRUPTED])
def test_replies_that_ended_early_count_with_the_text_they_have(status: MessageStatus) -> None:
    chat = a_chat(
        (Role.USER, "a", S.DONE), (Role.ASSISTANT, "half", status), (Role.USER, "b", S.DONE)
    )
    assert turns_of(chat) == [("user", "a"), ("assistant", "half"), ("user", "b")]


@pytest.mark.parametrize(
    ("text", "status"), [("half", S.FAILED), ("", S.STOPPED), ("", S.INTERRUPTED)]
)
def test_prompts_around_a_reply_that_does_not_count_become_one(
    text: str, status: MessageStatus
) -> None:
    chat = a_chat(
        (Role.USER, "a", S.DONE), (Role.ASSISTANT, text, status), (Role.USER, "b", S.DONE)
    )
    assert turns_of(chat) == [("user", "a\n\nb")]


def test_the_request_carries_the_chats_own_settings() -> None:
    chat = a_chat((Role.USER, "a", S.DONE), (Role.ASSISTANT, "", S.QUEUED))
    sampling = SamplingParams(temperature=0.0, seed=3)
    chat.settings = ChatSettings(sampling=sampling, max_tokens=50, stop=("END",))
    request = request_for(chat, chat.messages[-1])
    assert (request.request_id, request.origin, request.priority) == (
        "chat-7-1",
        Origin.GUI,
        Priority.INTERACTIVE,
    )
    assert (request.sampling, request.max_tokens, request.stop) == (sampling, 50, ("END",))


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("hello", "hello"),
        ("  two\n\nlines\t here ", "two lines here"),
        ("x" * 40, "x" * 40),
        ("x" * 60, "x" * 40 + "…"),
        (
            "Plan three days in Lisbon, with two small children",
            "Plan three days in Lisbon, with two…",
        ),
        (
            "one two three four five six seven eight, nine",
            "one two three four five six seven eight…",
        ),
        ("旅行の計画を立ててください。" * 5, ("旅行の計画を立ててください。" * 5)[:40] + "…"),
    ],
)
def test_titles_are_one_line_cut_between_words(prompt: str, title: str) -> None:
    assert title_for(prompt) == title
    assert len(title) <= 41
