"""A model's chat template: messages to one text, in a bounded sandbox, and on to token ids.

Templates come with model files and are foreign code: they may refuse a conversation, fail, or try to
do harm; each gives one error that names the line. Used on the intake thread. No torch.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes

from engine.api import ChatMessage
from engine.errors import InvalidRequest, UnsupportedModel
from engine.formats.base import Checkpoint
from engine.text.template_budget import Budget, TemplateTooCostlyError
from engine.text.template_sandbox import BoundedSandbox
from engine.text.tokenizer import Tokenizer
from engine.text.veil import Veil, taking_off

MAX_SOURCE_CHARS = 1 << 17
ROLES = ("system", "developer", "user", "assistant", "tool")
"""Templates build control tokens from roles, so only these are taken."""

_SYSTEM_ROLES = ("system", "developer")
_FILENAME = "<chat template>"

CHATML = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""For a model that has these tokens and no template."""

PLAIN = """\
{% for message in messages %}{{ message.role | capitalize }}: {{ message.content | trim }}

{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"""
"""For any other model without a template, usually a base model: a dialogue as people write one."""


class TemplateRefused(InvalidRequest):
    """The template itself called raise_exception: it does not take such a conversation."""


class ChatTemplate:
    """A compiled template.

    Raises UnsupportedModel, naming the line, when the source is no template.
    """

    def __init__(
        self,
        source: str,
        tokenizer: Tokenizer,
        *,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        if len(source) > MAX_SOURCE_CHARS:
            raise UnsupportedModel(
                f"the chat template has {len(source)} characters, the limit is {MAX_SOURCE_CHARS}"
            )
        sandbox = BoundedSandbox(Budget())
        try:
            self._code = sandbox.compile(source, filename=_FILENAME)
            tree = sandbox.parse(source)
        except jinja2.TemplateSyntaxError as error:
            raise UnsupportedModel(
                f"chat template, line {error.lineno}: {error.message}"
            ) from error
        except Exception as error:  # whatever the compilers of jinja2 and Python say to odd sources
            raise UnsupportedModel(f"the chat template does not compile: {error!r:.200}") from error
        self.source = source
        literals = {c.value for c in tree.find_all(nodes.Const) if isinstance(c.value, str)}
        self.veil = Veil([token.content for token in tokenizer.control_tokens], literals)
        self._special_names = dict(tokenizer.special_names)
        self._now = now

    def render(
        self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True
    ) -> str:
        """The text of the conversation, ready for the model to go on (or, without the prompt, to end).

        Raises TemplateRefused, InvalidRequest when the template fails on these messages, and
        UnsupportedModel when it does not come to an end within bounds.
        """
        budget = Budget()
        sandbox = BoundedSandbox(budget)
        functions = {"raise_exception": _raise_exception, "strftime_now": self._strftime_now}
        variables: dict[str, Any] = {
            **self._special_names,
            "messages": [dict(message) for message in messages],
            "tools": None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
        parts: list[str] = []
        try:
            template = jinja2.Template.from_code(
                sandbox, self._code, {**sandbox.globals, **functions}
            )
            for part in template.generate(variables):
                budget.spend(len(part))
                parts.append(part)
        except _RefusedError as error:
            raise TemplateRefused(
                f"the model's chat template refuses these messages{_line(error)}: {error}",
                param="messages",
            ) from error
        except TemplateTooCostlyError as error:
            raise UnsupportedModel(f"chat template{_line(error)}: {error}") from error
        except Exception as error:  # foreign code fails in any way it likes
            raise InvalidRequest(
                f"the model's chat template fails on these messages{_line(error)}: {error!s:.300}",
                param="messages",
            ) from error
        return "".join(parts)

    def known_role(self, role: str) -> str:
        """The role by a name the template knows: `developer` is the newer name of `system`."""
        return "system" if role == "developer" and role not in self.source else role

    def _strftime_now(self, pattern: str) -> str:
        return self._now().strftime(pattern)


class _RefusedError(jinja2.TemplateError):
    """Carries what a template said to raise_exception."""


def _raise_exception(message: object) -> NoReturn:
    raise _RefusedError(f"{message!s:.300}")


def _line(error: Exception) -> str:
    """Where in the template an error happened; "" when that is not known."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == _FILENAME]
    return f", line {lines[-1]}" if lines else ""


def load_chat_template(checkpoint: Checkpoint, tokenizer: Tokenizer) -> ChatTemplate:
    """The model's own template, else ChatML where the vocabulary has its tokens, else a plain dialogue.

    Raises UnsupportedModel, naming the line.
    """
    source = checkpoint.chat_template
    if source is None:
        names = {token.content for token in tokenizer.control_tokens}
        source = CHATML if {"<|im_start|>", "<|im_end|>"} <= names else PLAIN
    return ChatTemplate(source, tokenizer)


def encode_chat(
    tokenizer: Tokenizer,
    template: ChatTemplate,
    messages: Sequence[ChatMessage],
    *,
    continues: bool = False,
) -> list[int]:
    """The ids up to where the assistant's reply begins: control tokens from the template alone, BOS once.

    `continues`: and then the last message as the reply's beginning, with nothing after it.
    A system message that the template refuses becomes the beginning of the first user message.
    Raises InvalidRequest and UnsupportedModel as `ChatTemplate.render` does.
    """
    begun = ""
    if continues and messages:
        messages, begun = messages[:-1], messages[-1].content
    if not messages:
        raise InvalidRequest("messages is empty; send at least one", param="messages")
    for message in messages:
        if message.role not in ROLES:
            raise InvalidRequest(
                f"a message's role is {message.role!r:.50}, allowed are {', '.join(ROLES)}",
                param="messages",
            )
    try:
        return _encode(tokenizer, template, messages, begun)
    except TemplateRefused as refused:
        merged = _without_system(messages)
        if merged is None:
            raise
        try:
            return _encode(tokenizer, template, merged, begun)
        except TemplateRefused:
            raise refused from None


def _encode(
    tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[ChatMessage], begun: str
) -> list[int]:
    contents = [*(message.content for message in messages), begun]
    private = template.veil.private_characters([template.source, *contents])
    rendered = template.render(
        [
            {
                "role": template.known_role(message.role),
                "content": template.veil.put_on(message.content, private),
            }
            for message in messages
        ]
    )
    rendered += template.veil.put_on(begun, private)
    return tokenizer.encode_rendered(rendered, taking_off(private))


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
