"""Chats as Markdown for people: the version that is shown, with who said what. Pure; any thread, no Qt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.models.one_line import one_line
from studio.models.tool_use import ToolUse
from studio.services.chat_prompt import full_title

_UNSAFE = re.compile(r"[\x00-\x1f<>:\"/\\|?*]+")
_MOST_NAME_BYTES = 120
_MOST_RESULT_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The words of the page that are nobody's in the chat."""

    you: str = "You"
    reply: str = "Reply"
    system: str = "System prompt"
    attachment: str = "Attachment"
    tool: str = "Tool"
    cut_off: Mapping[MessageStatus, str] = field(default_factory=dict)
    """What stands under a reply that ended like that."""


def to_markdown(chat: Conversation, labels: Labels) -> str:
    """One loaded chat. What was attached is named and not repeated."""
    parts = [f"# {one_line(full_title(chat))}", f"*{_day(chat.created_s)}*"]
    if system := chat.settings.system_prompt.strip():
        parts += [f"**{labels.system}**", _quoted(system)]
    for message in chat.messages:
        parts += _turn(message, labels)
    return "\n\n".join(parts) + "\n"


def file_name(title: str, *, taken: Iterable[str] = ()) -> str:
    """A title as the name of a file on any system, without its ending; unlike those that are taken."""
    name = _UNSAFE.sub(" ", title)
    name = one_line(name).strip(". …")
    while len(name.encode()) > _MOST_NAME_BYTES:
        name = name[:-1].rstrip(". …")
    name = name or "chat"
    if name.split(".")[0].upper() in {"CON", "PRN", "AUX", "NUL", "COM1", "LPT1"}:
        name = f"{name} chat"
    used = {one.casefold() for one in taken}
    numbered, number = name, 2
    while numbered.casefold() in used:
        numbered, number = f"{name} ({number})", number + 1
    return numbered


def _turn(message: Message, labels: Labels) -> list[str]:
    who = {Role.USER: labels.you, Role.ASSISTANT: labels.reply, Role.SYSTEM: labels.system}
    head = f"## {who[message.role]}"
    files = [f"*{labels.attachment}: {one_line(one.name)}*" for one in message.attachments]
    text = [message.text.strip()] if message.text.strip() else []
    ending = labels.cut_off.get(message.status) if message.role is Role.ASSISTANT else None
    cut = [f"*({ending})*"] if ending else []
    calls = [part for use in message.calls for part in _call(use, labels)]
    return [head, *files, *text, *calls, *cut]


def _call(use: ToolUse, labels: Labels) -> list[str]:
    """A call of a tool with what came of it; a long result is cut."""
    name = one_line(use.tool or use.name)
    told = [f"**{labels.tool}: {name}** `{one_line(use.arguments).replace('`', chr(39))}`"]
    if use.result:
        told.append(_quoted(use.result[:_MOST_RESULT_CHARS]))
    return told


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _day(moment_s: float) -> str:
    return f"{datetime.fromtimestamp(moment_s):%Y-%m-%d %H:%M}"
