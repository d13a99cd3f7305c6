"""A chat to token ids: its template is given what it can show, and nothing that somebody wrote becomes a control token.

Used on the intake thread. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.api import Chat, ChatMessage, ToolChoice
from engine.errors import InvalidRequest
from engine.text.chat_template import ChatTemplate, TemplateRefused
from engine.text.generic_tools import adapted
from engine.text.replies.reply_format import ReplyFormat, ReplyStart
from engine.text.template_values import (
    TemplateShape,
    Values,
    changed,
    message_values,
    named_results,
    tool_values,
)
from engine.text.tokenizer import Tokenizer
from engine.text.veil import taking_off

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Templates build control tokens from roles, so only these are taken."""

_SYSTEM_ROLES = ("system", "developer")
_PLAIN = TemplateShape()
"""Serves messages that have a content and no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPrompt:
    """A chat as the model reads it."""

    text: str
    """As rendered, with the texts that people wrote as they wrote them."""
    token_ids: tuple[int, ...]
    reply: ReplyFormat
    """How the model writes its answer to it."""
    start: ReplyStart


def encode_chat(tokenizer: Tokenizer, template: ChatTemplate, chat: Chat) -> ChatPrompt:
    """The prompt up to where the assistant's reply begins: control tokens from the template alone, BOS once.

    `chat.continues`: and then the last message as the reply's beginning, with nothing after it.
    A system message that the template refuses becomes the beginning of the first user message. Tools that the template
    does not know are described in words. Raises InvalidRequest and UnsupportedModel as `ChatTemplate.render` does.
    """
    begun, messages = "", named_results(chat.messages)
    if chat.continues and messages:
        messages, begun = messages[:-1], messages[-1].content
    _check(messages)
    tools = () if chat.tool_choice is ToolChoice.NONE else chat.tools
    chat = replace(chat, messages=tuple(messages), tools=tools)
    reply = template.reply
    if tools or any(message.tool_calls or message.role == "tool" for message in messages):
        shape = template.shape
        chat = adapted(chat, shape)
        reply = reply if shape.knows_tools else reply.generic()
    prompt = _Prompt(tokenizer, template, chat, begun)
    try:
        return prompt.encoded(reply)
    except TemplateRefused as refused:
        merged = _without_system(chat.messages)
        if merged is None:
            raise
        prompt.chat = replace(chat, messages=tuple(merged))
        try:
            return prompt.encoded(reply)
        except TemplateRefused:
            raise refused from None


@dataclass(slots=True)
class _Prompt:
    """One chat on its way through one template."""

    tokenizer: Tokenizer
    template: ChatTemplate
    chat: Chat
    begun: str

    def encoded(self, reply: ReplyFormat) -> ChatPrompt:
        texts: list[str] = [self.template.source, self.begun]

        def note(text: str) -> str:
            texts.append(text)
            return text

        self._values(note)
        veil = self.template.veil
        private = veil.private_characters(texts)
        messages, tools, options = self._values(lambda text: veil.put_on(text, private))
        rendered = self.template.render(messages, tools=tools, options=options)
        start = reply.start_of(rendered, self.begun)
        rendered += veil.put_on(self.begun, private)
        unveiling = taking_off(private)
        ids = self.tokenizer.encode_rendered(rendered, unveiling)
        for veiled, original in unveiling.items():
            rendered = rendered.replace(veiled, original)
        return ChatPrompt(text=rendered, token_ids=tuple(ids), reply=reply, start=start)

    def _values(
        self, change: Callable[[str], str]
    ) -> tuple[list[Values], list[Values] | None, Values]:
        """What the template is given: messages, tools, options."""
        template, chat = self.template, self.chat
        shape = template.shape if any(map(_is_special, chat.messages)) else _PLAIN
        messages = [
            message_values(replace(each, role=template.known_role(each.role)), shape, change)
            for each in chat.messages
        ]
        tools = None
        if chat.tools and template.shape.knows_tools:
            tools = [tool_values(tool, change) for tool in chat.tools]
        options = {name: changed(value, change) for name, value in chat.template_options}
        return messages, tools, options


def _is_special(message: ChatMessage) -> bool:
    """Whether it takes more than role and content to give it to a template."""
    return bool(message.tool_calls or message.reasoning or message.role == "tool")


def _check(messages: Sequence[ChatMessage]) -> None:
    if not messages:
        raise InvalidRequest("messages is empty; send at least one", param="messages")
    for message in messages:
        if message.role not in ROLES:
            raise InvalidRequest(
                f"a message's role is {message.role!r:.50}, allowed are {', '.join(ROLES)}",
                param="messages",
            )


def _without_system(messages: Sequence[ChatMessage]) -> list[ChatMessage] | None:
    """The system messages at the beginning, put into the first user message; None if there are none."""
    count = next((i for i, m in enumerate(messages) if m.role not in _SYSTEM_ROLES), len(messages))
    if not count:
        return None
    texts = [message.content for message in messages[:count]]
    rest = list(messages[count:])
    if rest and rest[0].role == "user":
        texts.append(rest.pop(0).content)
    return [ChatMessage(role="user", content="\n\n".join(texts)), *rest]
