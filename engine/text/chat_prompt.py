"""A chat to token ids: its template is given what it can show, and nothing that somebody wrote becomes a control token.

Used on the intake thread. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.api import Chat, ChatMessage, ToolChoice
from engine.errors import InvalidRequest
from engine.text.chat_template import ChatTemplate, TemplateRefused
from engine.text.generic_tools import adapted
from engine.text.replies.reply_format import ReplyPlan
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
class RenderedChat:
    """A chat as its template writes it, up to where the assistant's reply begins."""

    veiled: str
    """What people wrote in it is veiled; see `engine.text.veil`."""
    unveiling: Mapping[str, str]
    plan: ReplyPlan
    """How the reply is to be read."""

    @property
    def text(self) -> str:
        text = self.veiled
        for veiled, original in self.unveiling.items():
            text = text.replace(veiled, original)
        return text


def encode_chat(tokenizer: Tokenizer, template: ChatTemplate, chat: Chat) -> tuple[int, ...]:
    """The tokens of `render_chat`: control tokens from the template alone, BOS once."""
    return encode_rendered(tokenizer, render_chat(template, chat))


def encode_rendered(tokenizer: Tokenizer, rendered: RenderedChat) -> tuple[int, ...]:
    return tuple(tokenizer.encode_rendered(rendered.veiled, rendered.unveiling))


def render_chat(template: ChatTemplate, chat: Chat) -> RenderedChat:
    """The prompt; with `chat.continues` the last message is the reply's beginning, with nothing after it.

    A system message that the template refuses becomes the beginning of the first user message. Tools that the template
    does not know are described in words. Raises InvalidRequest and UnsupportedModel as `ChatTemplate.render` does.
    """
    begun, messages = "", named_results(chat.messages)
    if chat.continues and messages:
        messages, begun = messages[:-1], messages[-1].content
        if not messages:
            return _alone(template, replace(chat, messages=()), begun)
    _check(messages)
    return _after(template, replace(chat, messages=tuple(messages)), begun)


def _alone(template: ChatTemplate, chat: Chat, begun: str) -> RenderedChat:
    """A reply's beginning that answers nothing, where the template does without."""
    try:
        return _after(template, chat, begun)
    except InvalidRequest:
        raise InvalidRequest(
            "messages has only the assistant's turn that the reply is to go on with, and the model's template takes "
            "no conversation that begins with it; send what it answers too",
            param="messages",
        ) from None


def _after(template: ChatTemplate, chat: Chat, begun: str) -> RenderedChat:
    """The turns, and the reply's beginning after them."""
    messages = chat.messages
    tools = () if chat.tool_choice is ToolChoice.NONE else chat.tools
    chat = replace(chat, tools=tools)
    plan = ReplyPlan(
        tools=tools,
        begun=begun,
        most_calls=None if chat.calls_in_parallel else 1,
        must_call=bool(tools) and chat.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED),
    )
    if tools or any(message.tool_calls or message.role == "tool" for message in messages):
        shape = template.shape
        if not shape.knows_tools and (tools or not shape.writes_calls):
            # all in words then, what was called before too
            shape = replace(shape, writes_calls=False, writes_results=False)
            plan = replace(plan, is_generic=True)
        chat = adapted(chat, shape)
    try:
        return _rendered(template, chat, plan)
    except TemplateRefused as refused:
        merged = _without_system(chat.messages)
        if merged is None:
            raise
        try:
            return _rendered(template, replace(chat, messages=tuple(merged)), plan)
        except TemplateRefused:
            raise refused from None


def _rendered(template: ChatTemplate, chat: Chat, plan: ReplyPlan) -> RenderedChat:
    texts: list[str] = [template.source, plan.begun]

    def note(text: str) -> str:
        texts.append(text)
        return text

    _values(template, chat, note)
    private = template.veil.private_characters(texts)

    def veil(text: str) -> str:
        return template.veil.put_on(text, private)

    messages, tools, options = _values(template, chat, veil)
    try:
        rendered = template.render(messages, tools=tools, options=options)
    except TemplateRefused:
        raise
    except InvalidRequest:
        if tools is not None:
            raise
        # some templates want a list, if an empty one
        rendered = template.render(messages, tools=[], options=options)
    plan = replace(plan, is_thinking=template.reply.is_thinking(rendered))
    return RenderedChat(
        veiled=rendered + veil(plan.begun), unveiling=taking_off(private), plan=plan
    )


def _values(
    template: ChatTemplate, chat: Chat, change: Callable[[str], str]
) -> tuple[list[Values], list[Values] | None, Values]:
    """What the template is given: messages, tools, options."""
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
