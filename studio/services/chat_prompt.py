"""What the engine is asked: a chat's turns as a prompt; and what a chat is called. Pure functions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from engine.api import (
    Chat,
    ChatMessage,
    Origin,
    Priority,
    Request,
    Stay,
    Tool,
    ToolCall,
    ToolChoice,
)
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
from studio.models.one_line import one_line
from studio.models.thoughts import split_thoughts
from studio.models.tool_use import ToolUse, ToolUseState

_TITLE_CHARS = 40
_FULL_TITLE_CHARS = 200
_TOOL = "tool"
_SUMMARY = "What was said before, in short:\n"
_USABLE = frozenset(
    {MessageStatus.DONE, MessageStatus.STOPPED, MessageStatus.LENGTH, MessageStatus.INTERRUPTED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """The tools that a reply may call."""

    tools: tuple[Tool, ...] = ()
    may_call: bool = True
    """False: the model is shown them and has to answer without."""
    stay: Stay | None = None
    """How long its state is kept while they run, and while the user is asked."""


def request_for(
    chat: Conversation, reply: Message, *, resumes: bool = False, toolbox: Toolbox | None = None
) -> Request:
    """The request whose answer becomes `reply`, the last message of the chat, or goes on with the text it has.

    `resumes`: it goes on with the state that the engine has on disk.
    """
    toolbox = toolbox or Toolbox()
    prompt = prompt_for(chat, continued=reply if reply.text and not resumes else None)
    prompt = with_tools(prompt, toolbox.tools, may_call=toolbox.may_call)
    before = chat.messages[-2] if len(chat.messages) > 1 else None
    follows = before is not None and bool(before.calls) and before.role is Role.ASSISTANT
    return Request(
        request_id=reply_request_id(reply),
        origin=Origin.GUI,
        prompt=prompt,
        tells_parts=bool(toolbox.tools),
        stays=toolbox.stay if toolbox.tools and toolbox.may_call else None,
        follows=reply_request_id(before) if follows and before is not None else "",
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
        if message.status not in _USABLE or message is continued:
            continue
        if message.calls:
            turns += turns_of_calls(message)
        elif content:
            if turns and turns[-1].role == message.role.value and not turns[-1].tool_calls:
                content = f"{turns.pop().content}\n\n{content}"
            turns.append(ChatMessage(role=message.role.value, content=content))
    if continued is not None:
        turns.append(ChatMessage(role=continued.role.value, content=continued.text))
    return Chat(messages=tuple(turns), continues=continued is not None)


def with_tools(prompt: Chat, tools: tuple[Tool, ...], *, may_call: bool = True) -> Chat:
    """The prompt with the tools that its reply is offered, if there are any."""
    choice = ToolChoice.AUTO if may_call else ToolChoice.NONE
    return replace(prompt, tools=tools, tool_choice=choice) if tools else prompt


def turns_of_calls(message: Message) -> Iterator[ChatMessage]:
    """A reply that calls tools, as the model wrote it, and a turn with what came of each call."""
    reasoning, content = split_thoughts(message.text)
    calls = tuple(
        ToolCall(call_id=use.call_id, name=use.name, arguments=use.arguments or "{}")
        for use in message.calls
    )
    role = message.role.value
    yield ChatMessage(role=role, content=content.strip(), reasoning=reasoning, tool_calls=calls)
    for use in message.calls:
        yield ChatMessage(
            role=_TOOL, content=result_of(use), tool_call_id=use.call_id, name=use.name
        )


def result_of(use: ToolUse) -> str:
    """What the model is told of a call."""
    match use.state:
        case ToolUseState.DONE:
            return use.result or "(no output)"
        case ToolUseState.FAILED:
            return f"Error: {use.result}"
        case ToolUseState.DENIED if use.result:
            return f"The user did not allow this call. They say: {use.result}"
        case _:
            return "The user did not allow this call."


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
    name = one_line(attachment.name)
    longest = max((len(run) for run in re.findall(r"`{3,}", attachment.text)), default=2)
    fence = "`" * (longest + 1)
    return f"File “{name}”:\n\n{fence}\n{attachment.text.strip()}\n{fence}"


def title_for(prompt: str, *, most_chars: int = _TITLE_CHARS) -> str:
    """The beginning of a prompt on one line: at most so many characters, cut between words where it can be."""
    line = one_line(prompt)
    if not line:
        return NEW_CHAT_TITLE
    if len(line) <= most_chars:
        return line
    cut = line[: most_chars + 1]
    head = cut.rpartition(" ")[0] or cut[:most_chars]
    return head.rstrip(" ,;:.-") + "…"


def full_title(chat: Conversation) -> str:
    """What a loaded chat is called where there is room: its title, or more of the prompt that this is cut from."""
    for message in chat.tree:
        if message.parent_id is None and title_for(message.text) == chat.title:
            return title_for(message.text, most_chars=_FULL_TITLE_CHARS)
    return chat.title


def numbered_title(title: str, taken: Container[str]) -> str:
    """A title for a copy: the first of "Lisbon (2)", "Lisbon (3)" … that no chat has."""
    base = re.sub(r" \(\d{1,6}\)$", "", title)
    return next(name for n in itertools.count(2) if (name := f"{base} ({n})") not in taken)
