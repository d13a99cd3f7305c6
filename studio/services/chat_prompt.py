"""What the engine is asked: a chat's turns as a prompt; and what a chat is called. Pure functions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container

from engine.api import Chat, ChatMessage, Origin, Priority, Request
from studio.models.attachment import Attachment
from studio.models.chat import (
    NEW_CHAT_TITLE,
    ContextCut,
    Conversation,
    Message,
    MessageStatus,
    Role,
    reply_request_id,
)

_TITLE_CHARS = 40
_SUMMARY = "What was said before, in short:\n"
_USABLE = frozenset(
    {MessageStatus.DONE, MessageStatus.STOPPED, MessageStatus.LENGTH, MessageStatus.INTERRUPTED}
)


def request_for(chat: Conversation, reply: Message, *, resumes: bool = False) -> Request:
    """The request whose answer becomes `reply`, the last message of the chat, or goes on with the text it has.

    `resumes`: it goes on with the state that the engine has on disk.
    """
    return Request(
        request_id=reply_request_id(reply),
        origin=Origin.GUI,
        prompt=prompt_for(chat, continued=reply if reply.text and not resumes else None),
        sampling=chat.settings.sampling,
        max_tokens=chat.settings.max_tokens,
        stop=chat.settings.stop,
        priority=Priority.INTERACTIVE,
        is_durable=not chat.is_temporary,
        resumes=resumes,
    )


def prompt_for(chat: Conversation, *, continued: Message | None = None) -> Chat:
    """System prompt and turns, without failed, running and empty replies; at last the reply that is gone on with.

    Prompts that thereby follow each other become one: many templates want the roles to alternate. What was cut off for
    want of room is left out; a summary of it follows the system prompt.
    """
    turns: list[ChatMessage] = []
    cut, system = chat.cut, chat.settings.system_prompt
    if cut is not None and cut.summary:
        system = f"{system}\n\n{_SUMMARY}{cut.summary}".lstrip()
    if system.strip():
        turns.append(ChatMessage(role=Role.SYSTEM.value, content=system))
    for message in messages_after(chat, cut):
        content = content_of(message)
        if message.status not in _USABLE or not content or message is continued:
            continue
        if turns and turns[-1].role == message.role.value:
            content = f"{turns.pop().content}\n\n{content}"
        turns.append(ChatMessage(role=message.role.value, content=content))
    if continued is not None:
        turns.append(ChatMessage(role=continued.role.value, content=continued.text))
    return Chat(messages=tuple(turns), continues=continued is not None)


def messages_after(chat: Conversation, cut: ContextCut | None) -> list[Message]:
    """The messages that the model is given."""
    ids = [message.message_id for message in chat.messages]
    first = ids.index(cut.first_id) if cut is not None and cut.first_id in ids else 0
    return chat.messages[first:]


def content_of(message: Message) -> str:
    """A message's text as the model reads it: what was read of its files first, each under its name."""
    files = [wrapped(one) for one in message.attachments if one.text]
    return "\n\n".join([*files, message.text] if message.text else files)


def wrapped(attachment: Attachment) -> str:
    """A file's text between two lines that do not occur in it, so that it cannot pass for what the user says."""
    name = " ".join(attachment.name.split())
    longest = max((len(run) for run in re.findall(r"`{3,}", attachment.text)), default=2)
    fence = "`" * (longest + 1)
    return f"File “{name}”:\n\n{fence}\n{attachment.text.strip()}\n{fence}"


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


def numbered_title(title: str, taken: Container[str]) -> str:
    """A title for a copy: the first of "Lisbon (2)", "Lisbon (3)" … that no chat has."""
    base = re.sub(r" \(\d{1,6}\)$", "", title)
    return next(name for n in itertools.count(2) if (name := f"{base} ({n})") not in taken)
