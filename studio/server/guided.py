"""What a reply must match, under the names that programs for vLLM and SGLang send.

`guided_json` and its kin, `structured_outputs`, which has the same by shorter names, `regex` and `ebnf`. Read as those
of `structured`, into the same grammars; what has no counterpart is refused by name. Any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from engine.api import Grammar, GrammarKind
from studio.server.structured import (
    StructuredFields,
    object_grammar,
    only_one,
    read_grammar,
    read_schema,
)
from studio.server.wire import only, wrong_value

_Read = Callable[[object, str], Grammar | None]


def _read_json(value: object, param: str) -> Grammar | None:
    """A schema as an object, or as its text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise wrong_value("is a string that is no JSON; send the schema as an object") from None
    return read_schema(value, param)


def _read_regex(value: object, param: str) -> Grammar | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise wrong_value("is no regular expression; send a string")
    return Grammar(kind=GrammarKind.REGEX, source=value, param=param)


def _read_choice(value: object, param: str) -> Grammar | None:
    """One of some texts, whole."""
    if value is None or value == []:
        return None
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise wrong_value("is no list of texts with at least a character each")
    texts = " | ".join(map(_quoted, value))
    return Grammar(kind=GrammarKind.LARK, source=f"start: {texts}", param=param)


def _quoted(text: str) -> str:
    """As Lark writes it. It takes no raw DEL, and what looks like a control token is none."""
    return json.dumps(text).replace("\x7f", "\\u007f").replace("<", "\\u003c")


def _read_json_object(value: object, param: str) -> Grammar | None:
    if value is not None and not isinstance(value, bool):
        raise wrong_value("is neither true nor false")
    return object_grammar(param) if value else None


_READERS: dict[str, _Read] = {
    "json": _read_json,
    "regex": _read_regex,
    "choice": _read_choice,
    "grammar": read_grammar,
    "json_object": _read_json_object,
}


def _read_structured(value: object) -> Grammar | None:
    """`structured_outputs`: an object with one of the readers' names; the others may be null."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise wrong_value('is no object like {"regex": "..."}')
    found: list[Grammar] = []
    for name, each in value.items():
        if name not in _READERS:
            if each not in (None, False):
                raise wrong_value(
                    f"has {name[:40]!r}, allowed are {', '.join(_READERS)}; leave it out"
                )
            continue
        try:
            grammar = _READERS[name](each, f"structured_outputs.{name}")
        except ValueError as error:
            raise wrong_value(f"has a {name} that {error}") from None
        if grammar is not None:
            found.append(grammar)
    if len(found) > 1:
        raise wrong_value(
            "has more than one of its fields; a reply can match one, leave the others out"
        )
    return found[0] if found else None


_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_SCHEMA: dict[str, Any] = {"type": ["object", "string", "null"]}
_TEXTS: dict[str, Any] = {
    "anyOf": [{"type": "array", "items": {"type": "string", "minLength": 1}}, {"type": "null"}]
}
_STRUCTURED: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "json": _SCHEMA,
                "regex": _TEXT,
                "choice": _TEXTS,
                "grammar": _TEXT,
                "json_object": {"type": ["boolean", "null"]},
            },
        },
        {"type": "null"},
    ]
}


def _reader(read: _Read, param: str) -> PlainValidator:
    return PlainValidator(lambda value: read(value, param))


class GuidedFields(StructuredFields):
    """What chat and text completions may ask of the form of a reply: one of all these at most."""

    guided_json: Annotated[
        Grammar | None, _reader(_read_json, "guided_json"), WithJsonSchema(_SCHEMA)
    ] = None
    guided_regex: Annotated[
        Grammar | None, _reader(_read_regex, "guided_regex"), WithJsonSchema(_TEXT)
    ] = None
    guided_choice: Annotated[
        Grammar | None, _reader(_read_choice, "guided_choice"), WithJsonSchema(_TEXTS)
    ] = None
    guided_grammar: Annotated[
        Grammar | None, _reader(read_grammar, "guided_grammar"), WithJsonSchema(_TEXT)
    ] = None
    structured_outputs: Annotated[
        Grammar | None, PlainValidator(_read_structured), WithJsonSchema(_STRUCTURED)
    ] = None
    regex: Annotated[Grammar | None, _reader(_read_regex, "regex"), WithJsonSchema(_TEXT)] = None
    ebnf: Annotated[Grammar | None, _reader(read_grammar, "ebnf"), WithJsonSchema(_TEXT)] = None
    guided_whitespace_pattern: Annotated[Any, only()] = None
    structural_tag: Annotated[Any, only()] = None

    @property
    def wanted_grammar(self) -> Grammar | None:
        """The one that is asked for. Raises InvalidRequest where there are several."""
        return only_one(
            self.response_format,
            self.json_schema,
            self.grammar,
            self.guided_json,
            self.guided_regex,
            self.guided_choice,
            self.guided_grammar,
            self.structured_outputs,
            self.regex,
            self.ebnf,
        )
