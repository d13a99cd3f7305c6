"""A model's chat template: messages to one text, in a bounded sandbox, and on to token ids.

Templates come with model files and are foreign code: they may refuse a conversation, fail, or try to
do harm; each gives one error that names the line. Used on the intake thread. No torch.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes

from engine.errors import InvalidRequest, UnsupportedModel
from engine.formats.base import Checkpoint
from engine.text.replies.reply_format import ReplyFormat
from engine.text.template_budget import Budget, TemplateTooCostlyError
from engine.text.template_probe import probe
from engine.text.template_sandbox import BoundedSandbox
from engine.text.template_values import TemplateShape
from engine.text.tokenizer import Tokenizer
from engine.text.veil import Veil

MAX_SOURCE_CHARS = 1 << 17
_FILENAME = "<chat template>"
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})

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
        self.reply = ReplyFormat.of(source, tokenizer)
        """How its model writes."""
        literals = {c.value for c in tree.find_all(nodes.Const) if isinstance(c.value, str)}
        self.veil = Veil([token.content for token in tokenizer.control_tokens], literals)
        self._special_names = dict(tokenizer.special_names)
        self._now = now

    @cached_property
    def shape(self) -> TemplateShape:
        """What it does with tools and reasoning; found out at the first use."""
        return probe(self.source, lambda messages, tools: self.render(messages, tools=tools))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        options: Mapping[str, object] = _NO_OPTIONS,
        add_generation_prompt: bool = True,
    ) -> str:
        """The text of the conversation, ready for the model to go on (or, without the prompt, to end).

        Values are given to the template as they are; `options` are further variables. Raises TemplateRefused,
        InvalidRequest when the template fails on these messages, and UnsupportedModel when it does not come to an end
        within bounds.
        """
        budget = Budget()
        sandbox = BoundedSandbox(budget)
        functions = {"raise_exception": _raise_exception, "strftime_now": self._strftime_now}
        variables: dict[str, Any] = {
            **self._special_names,
            "documents": None,
            **options,
            "messages": [dict(message) for message in messages],
            "tools": None if tools is None else list(tools),
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
