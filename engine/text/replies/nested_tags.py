"""Calls whose arguments are elements within elements, each tag behind a mark of its own (MiniMax M3).

`<invoke name="f">` holds an element for each argument, an object's holds one for each of its members, a list's `<item>`
for each of its own. A section is read whole, and told once it is closed; what does not parse is text. Engine thread.
No torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.text.replies.context import ReplyContext
from engine.text.replies.reader import Reading
from engine.text.replies.schemas import Schemas, json_value
from engine.text.replies.whole_calls import Call, read_whole

MAX_DEPTH = 64
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[^<>]+)>(?P<text>.*)", re.DOTALL)
_INVOKE = re.compile(r'invoke name="(?P<tool>[^"]+)"')


@dataclass(slots=True)
class _Element:
    name: str
    text: str
    children: list[_Element] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedBody:
    """A section up to `mark`+`close`, with `mark` before each of its tags."""

    mark: str
    close: str

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        parse = partial(self._calls, schemas=context.schemas)
        yield from read_whole(context, before, close=self.mark + self.close, parse=parse)
        return True

    def _calls(self, section: str, schemas: Schemas) -> list[Call] | None:
        first, *pieces = section.split(self.mark)
        try:
            tools = list(_elements(iter(pieces), depth=0))
            return None if first.strip() else [_call(tool, schemas) for tool in tools]
        except ValueError:
            return None


def _elements(pieces: Iterator[str], *, depth: int, within: str = "") -> Iterator[_Element]:
    """Those up to the end of the one they are in. Raises ValueError for tags that do not pair."""
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    for piece in pieces:
        tag = _TAG.fullmatch(piece)
        if tag is None:
            raise ValueError("no tag")
        if tag["end"]:
            if tag["name"] != within or tag["text"].strip():
                raise ValueError("another end")
            return
        inner = _INVOKE.fullmatch(tag["name"])
        element = _Element(tag["name"], tag["text"])
        element.children += _elements(
            pieces, depth=depth + 1, within="invoke" if inner else tag["name"]
        )
        if element.text.strip() and (inner or element.children):
            raise ValueError("text beside elements")
        yield element
    if within:
        raise ValueError("no end")


def _call(tool: _Element, schemas: Schemas) -> Call:
    found = _INVOKE.fullmatch(tool.name)
    if found is None:
        raise ValueError("no call")
    name = found["tool"]
    arguments = {each.name: _value(each, schemas.of(name, each.name)) for each in tool.children}
    return name, json.dumps(arguments, ensure_ascii=False, allow_nan=False)


def _value(element: _Element, schema: dict[str, Any]) -> object:
    kind, children = schema.get("type"), element.children
    if kind == "array" or (kind != "object" and children and _are_items(children)):
        items = schema.get("items")
        return [_value(each, items if isinstance(items, dict) else {}) for each in children]
    if kind == "object" or children:
        members = schema.get("properties")
        known = members if isinstance(members, dict) else {}
        return {each.name: _value(each, _object(known.get(each.name))) for each in children}
    return json_value(schema, element.text)


def _are_items(children: list[_Element]) -> bool:
    return all(each.name == "item" for each in children)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
