"""Calls in a notation that is no JSON: each section is read whole, and told once it is closed.

Python's `[f(a="x", b=1)]` (LFM2), and `call:f{a:<|"|>x<|"|>,b:1}` (Gemma 4). What does not parse is text. Engine
thread. No torch.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from engine.text.replies.context import ReplyContext
from engine.text.replies.json_calls import JsonCalls
from engine.text.replies.reader import Reading

MAX_SECTION_CHARS = 1 << 18
"""A longer one is text: Python's parser takes much memory for each character."""

Call = tuple[str, str]
"""A name, and the arguments as JSON."""
_CONSTANTS = {"true": True, "false": False, "null": None}
_GEMMA_CALL = re.compile(r"\s*call:([\w.:/-]+)(\{.*\})\s*", re.DOTALL)
_BARE_KEY = re.compile(r'([{,]\s*)([^\s{}\[\],:"]+)\s*:')
GEMMA_QUOTE = '<|"|>'


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBody:
    """A section up to `close`, read by `parse`."""

    close: str
    parse: Callable[[str], list[Call] | None]
    kept: tuple[str, ...] = ()
    """Marks that `parse` wants to see as they are spelled."""

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        reader, sink = context.reader, context.sink
        if (yield from reader.peek()) == "{":
            yield from JsonCalls(reader, sink).all(before)
            return True
        yield from read_whole(context, before, close=self.close, parse=self.parse)
        return True


def read_whole(
    context: ReplyContext, before: str, *, close: str, parse: Callable[[str], list[Call] | None]
) -> Reading[None]:
    """Tell the calls of a section up to `close`; what is not closed or does not parse is text, after `before`."""
    sink = context.sink
    section, closed = yield from context.reader.take_until(
        context.needles(close), MAX_SECTION_CHARS
    )
    calls = parse(context.marks.plain(section)) if closed else None
    if not calls:
        sink.text(before + section + closed)
        return
    for name, arguments in calls:
        if sink.is_full:
            break
        sink.begin_call(name)
        sink.arguments(arguments)
        sink.end_call()


def python_calls(section: str) -> list[Call] | None:
    """`[f(a="x"), g()]`, or one call; None where it is none of that."""
    try:
        tree = ast.parse(section.strip(), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        return [_python_call(node) for node in nodes]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _python_call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by keywords")
    arguments = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError("no name")
        arguments[keyword.arg] = _python_value(keyword.value)
    return ast.unparse(node.func), json.dumps(arguments, ensure_ascii=False, allow_nan=False)


def _python_value(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return _CONSTANTS[node.id]
    if isinstance(node, ast.List):
        return [_python_value(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        values = [_python_value(value) for value in node.values]
        return dict(zip(keys, values, strict=True))
    return ast.literal_eval(node)


def gemma_call(section: str) -> list[Call] | None:
    """`call:f{key:value}` with strings between quotes of their own; None where it is none."""
    match = _GEMMA_CALL.fullmatch(section)
    if match is None:
        return None
    pieces = match[2].split(GEMMA_QUOTE)
    for place, piece in enumerate(pieces):
        is_string = place % 2
        pieces[place] = (
            json.dumps(piece, ensure_ascii=False) if is_string else _BARE_KEY.sub(r'\1"\2":', piece)
        )
    arguments = "".join(pieces)
    try:
        return [(match[1], arguments)] if isinstance(json.loads(arguments), dict) else None
    except (ValueError, RecursionError):
        return None
