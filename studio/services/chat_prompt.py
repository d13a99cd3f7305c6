"""What the engine is asked: a chat's turns as a prompt, and a title from the first of them. Pure functions."""

from __future__ import annotations

from engine.api import Chat, ChatMessage, Origin, Priority, Request
from studio.models.chat import (
    NEW_CHAT_TITLE,
    Conversation,
    Message,
    MessageStatus,
    Role,
    reply_request_id,
)

_TITLE_CHARS = 40
_USABLE = frozenset(
    {MessageStatus.DONE, MessageStatus.STOPPED, MessageStatus.LENGTH, MessageStatus.INTERRUPTED}
)


def request_for(chat: Conversation, reply: Message, *, resumes: bool = False) -> Request:
    """The request whose answer becomes `reply`, the last message of the chat; or one that goes on with it."""
    return Request(
        request_id=reply_request_id(reply),
        origin=Origin.GUI,
        prompt=prompt_for(chat),
        sampling=chat.sampling,
        max_tokens=chat.max_tokens,
        priority=Priority.INTERACTIVE,
        is_durable=True,
        resumes=resumes,
    )


def prompt_for(chat: Conversation) -> Chat:
    """System prompt and turns, without failed, running and empty replies.

    Prompts that thereby follow each other become one: many templates want the roles to alternate.
    """
    turns: list[ChatMessage] = []
    if chat.system_prompt.strip():
        turns.append(ChatMessage(role=Role.SYSTEM.value, content=chat.system_prompt))
    for message in chat.messages:
        if message.status not in _USABLE or not message.text:
            continue
        if turns and turns[-1].role == message.role.value:
            joined = f"{turns.pop().content}\n\n{message.text}"
            turns.append(ChatMessage(role=message.role.value, content=joined))
        else:
            turns.append(ChatMessage(role=message.role.value, content=message.text))
    return Chat(messages=tuple(turns))


def title_for(prompt: str) -> str:
    """The beginning of a prompt on one line: at most 40 characters, cut between words where it can be."""
    line = " ".join(prompt.split())
    if not line:
        return NEW_CHAT_TITLE
    if len(line) <= _TITLE_CHARS:
        return line
    cut = line[: _TITLE_CHARS + 1]
    head = cut.rpartition(" ")[0] or cut[:_TITLE_CHARS]
    return head.rstrip(" ,;:.-") + "…"
