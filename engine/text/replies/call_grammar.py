"""What a reply must match so that it makes the calls it was asked for, as its model's family writes them.

Lark, as llguidance reads it. Its lexer takes the longest match and never goes back: text of any length ends where a
control token comes, or with a tag that it includes. Used on the intake thread. No torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.api import Chat, Grammar, GrammarKind, Tool, ToolChoice
from engine.text.json_schemas import prepared, prepared_schema
from engine.text.replies.call_shape import CallShape, ParameterShape
from engine.text.replies.family import Family
from engine.text.replies.json_families import GENERIC
from engine.text.replies.schemas import read_object
from engine.text.replies.thinking import Thinking
from engine.text.tokenizer import Tokenizer

PARAM = "tools"
"""The field of a request that errors about such a grammar name."""
_ANY_TEXT = "/(.|\\n)*/"
_NO_ARGUMENTS: dict[str, Any] = {"properties": {}}
"""Of a tool that says nothing about arguments."""
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWish:
    """Which calls a reply may or must make."""

    tools: tuple[Tool, ...]
    must_call: bool
    most: int | None
    """None: any number."""

    @classmethod
    def of(cls, chat: Chat) -> CallWish | None:
        """None where the model may write what it likes."""
        many = None if chat.calls_in_parallel else 1
        match chat.tool_choice:
            case ToolChoice.NAMED:
                tools = tuple(tool for tool in chat.tools if tool.name == chat.tool_name)
                return cls(tools=tools, must_call=True, most=1)
            case ToolChoice.REQUIRED:
                return cls(tools=chat.tools, must_call=True, most=many)
            case ToolChoice.AUTO if any(tool.is_strict for tool in chat.tools):
                return cls(tools=chat.tools, must_call=False, most=many)
        return None


def call_grammar(
    wish: CallWish,
    family: Family,
    thinking: tuple[Thinking, bool] | None,
    tokenizer: Tokenizer,
    *,
    is_loose: bool = False,
    answer: Grammar | None = None,
) -> Grammar:
    """The grammar of a whole reply. `answer` is the JSON schema that it may match instead of calling.

    `thinking` is how the model thinks and whether the prompt has begun it; `is_loose` takes any object as the arguments
    of tools that are not strict. Raises SchemaRefused for schemas that cannot be followed.
    """
    source = _Source(family, tokenizer)
    shape = family.shape or GENERIC.shape
    assert shape is not None
    lead = source.spelled(shape.section + shape.before_name)
    body = " | ".join(_body(source, shape, tool, is_loose=is_loose) for tool in wish.tools)
    source.rule("body", body)
    more = source.spelled(shape.between + shape.before_name)
    one = 1 in (wish.most, shape.most)
    tail = source.spelled(shape.section_end)
    calls = f"body {'' if one else f'({more} body)*'} {tail}"
    source.rule("calls", calls)
    start = f"{lead} calls"
    if answer is not None:
        start = _or_answer(source, shape, calls=start, tools=wish.tools, answer=answer)
    elif not wish.must_call:
        start = _or_text(source, shape, lead)
    head = "" if thinking is None else _thoughts(source, thinking[0], is_open=thinking[1])
    source.rules.insert(0, f"start: {head} ({start})")
    return Grammar(kind=GrammarKind.LARK, source="\n".join(source.rules), param=PARAM)


def json_after_thoughts(grammar: Grammar, thinking: Thinking, tokenizer: Tokenizer) -> Grammar:
    """The rest of reasoning that has begun, then what a JSON schema asks for. Raises SchemaRefused."""
    source = _Source(GENERIC, tokenizer)
    head = _thoughts(source, thinking, is_open=True)
    described = json.dumps(prepared_schema(grammar.source), ensure_ascii=False)
    source.rule("answer", f"%json {described}")
    source.rules.insert(0, f"start: {head} answer")
    return Grammar(kind=GrammarKind.LARK, source="\n".join(source.rules), param=grammar.param)


@dataclass(slots=True)
class _Source:
    """Lark being written."""

    family: Family
    tokenizer: Tokenizer
    rules: list[str] = field(default_factory=list)
    _ids: dict[str, int] = field(default_factory=dict)
    _names: int = 0

    def __post_init__(self) -> None:
        added = (*self.tokenizer.control_tokens, *self.tokenizer.plain_added_tokens)
        self._ids = {token.content: token.token_id for token in added if len(token.content) > 1}

    def rule(self, name: str, definition: str) -> None:
        self.rules.append(f"{name}: {definition}")

    def new_rule(self, definition: str, prefix: str = "r") -> str:
        name = f"{prefix}{self._names}"
        self._names += 1
        self.rule(name, definition)
        return name

    def token(self, tag: str) -> str:
        """A tag that is one token of the vocabulary; "" if it is not."""
        return f"<[{self._ids[tag]}]>" if tag in self._ids else ""

    def spelled(self, text: str, more_tags: Iterable[str] = ()) -> str:
        """A fixed text: the family's tags as tokens where they are tokens, the rest as it is."""
        tags = [tag for tag in (*self.family.marks, *more_tags) if tag in self._ids]
        pattern = "|".join(map(re.escape, sorted(tags, key=len, reverse=True)))
        parts = re.split(f"({pattern})", text) if pattern else [text]
        return " ".join(
            self.token(part) or json.dumps(part, ensure_ascii=False) for part in parts if part
        )

    def text_until(self, tag: str) -> str:
        """Any text up to a tag and with it."""
        if token := self.token(tag):
            return f"{self.new_rule(_ANY_TEXT, 'T')}? {token}"
        name = f"lazy{self._names}"
        self._names += 1
        self.rules.append(f"{name}[lazy]: /(.|\\n)*{_escaped(tag)}/")
        return name


def _body(source: _Source, shape: CallShape, tool: Tool, *, is_loose: bool) -> str:
    """From a tool's name to the end of its call."""
    schema = read_object(tool.parameters) or _NO_ARGUMENTS
    if is_loose and not tool.is_strict:
        schema = {}
    begin = source.spelled(tool.name + shape.after_name)
    if shape.parameters is None:
        arguments = source.new_rule(f"%json {_described(_of_object(schema))}", "args")
    else:
        arguments = _parameters(source, shape.parameters, schema)
    return source.new_rule(f"{begin} {arguments} {source.spelled(shape.end)}", "call")


def _of_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments are an object, and of what it describes."""
    schema = {"type": "object", **schema}
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _described(schema: dict[str, Any]) -> str:
    """As it stands behind %json. Raises SchemaRefused."""
    return json.dumps(prepared(schema), ensure_ascii=False)


def _parameters(source: _Source, shape: ParameterShape, schema: dict[str, Any]) -> str:
    """Arguments one by one, in the schema's order; those that need not be there may be left out."""
    properties = schema.get("properties")
    required = schema.get("required", ())
    parts = []
    for name, described in (properties if isinstance(properties, dict) else {}).items():
        begin = source.spelled(shape.before_name + name + shape.after_name)
        value = _value(source, shape, described if isinstance(described, dict) else {}, schema)
        rule = source.new_rule(f"{begin} {value}", "param")
        parts.append(rule if name in required else f"{rule}?")
    return " ".join(parts)


def _value(
    source: _Source, shape: ParameterShape, schema: dict[str, Any], whole: dict[str, Any]
) -> str:
    """One value and what comes after it."""
    words = schema.get("enum")
    after = source.spelled(shape.after_value)
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        return f"({' | '.join(json.dumps(word, ensure_ascii=False) for word in words)}) {after}"
    if schema.get("type", "string") == "string":
        tag = shape.after_value.strip()
        return f"{source.text_until(tag)} {source.spelled(shape.after_value.partition(tag)[2])}"
    definitions: dict[str, Any] = {
        key: whole[key] for key in ("$defs", "definitions") if key in whole
    }
    described = _described({**definitions, **schema})
    return f"{source.new_rule(f'%json {described}', 'value')} {after}"


def _or_text(source: _Source, shape: CallShape, lead: str) -> str:
    """Text, and calls after it where the model makes some."""
    spelled = shape.section + shape.before_name
    if lead.startswith("<["):
        text = source.new_rule(_ANY_TEXT, "T")
        return f"{text}? ({lead} calls)?"
    if shape.text_begins or spelled.startswith("{"):
        begins = _escaped(shape.text_begins) or "[^{ \\n]"
        text = source.new_rule(f"/{begins}(.|\\n)*/", "T")
        return f"{text} | {lead} calls"
    tag = _escaped(spelled)
    text = source.new_rule(f"/(.|\\n)+/ & ~/(.|\\n)*{tag}(.|\\n)*/", "T")
    return f"{text} | {source.text_until(spelled)} calls"


def _or_answer(
    source: _Source, shape: CallShape, *, calls: str, tools: Sequence[Tool], answer: Grammar
) -> str:
    """Calls, or JSON of a schema. Where calls are JSON too, both are one schema: a lexer could not tell them apart."""
    described = json.loads(answer.source)
    if (shape.section + shape.before_name).startswith("{"):
        described = {"anyOf": [_calls_schema(shape, tools), described]}
        return source.new_rule(f"%json {_described(described)}", "answer")
    return f"{source.new_rule(f'%json {_described(described)}', 'answer')} | {calls}"


def _calls_schema(shape: CallShape, tools: Sequence[Tool]) -> dict[str, Any]:
    """One call as a JSON schema; arguments that refer to definitions may be anything."""
    key = "parameters" if "parameters" in shape.after_name else "arguments"
    calls = []
    for tool in tools:
        refers = "$ref" in tool.parameters
        schema = {} if refers else read_object(tool.parameters) or _NO_ARGUMENTS
        calls.append(_exactly({"name": {"const": tool.name}, key: _of_object(schema)}))
    if not shape.section:
        return {"anyOf": calls}
    items = {"type": "array", "items": {"anyOf": calls}, "minItems": 1, "maxItems": 1}
    return _exactly({"tool_calls": items})


def _exactly(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _thoughts(source: _Source, thinking: Thinking, *, is_open: bool) -> str:
    """Reasoning before the rest."""
    tags = (thinking.open, thinking.close)
    space = source.new_rule("/[ \\n]{1,4}/", "S")
    thought = f"{source.text_until(thinking.close)} {space}?"
    return thought if is_open else f"({source.spelled(thinking.open, tags)} {thought})?"


def _escaped(text: str) -> str:
    """As a regular expression between slashes."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", text).replace("\n", "\\n")
