"""Calls whose arguments are written one by one between tags, as JSON: `<parameter=city>Paris</parameter>` and its kin.

What a value is, the tool's schema says: a string is told as it comes, anything else once it is whole, as the JSON that
it is, else as a string. Engine thread. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.text.replies.context import ReplyContext
from engine.text.replies.parts import PartsSink
from engine.text.replies.reader import Reading
from engine.text.replies.schemas import Schemas

MAX_NAME_CHARS = 256
_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterTags:
    """How a format writes one argument: `open`NAME`named`VALUE`close`."""

    open: Sequence[str]
    named: Sequence[str]
    close: Sequence[str]
    trims: bool = True
    """One line feed at either end of a value is none of it."""
    spoken_type: Mapping[str, bool] = field(default_factory=dict)
    """Of those of `named` that say so: whether the value is a string."""


class Arguments:
    """The JSON object of one call, written into a sink argument by argument."""

    def __init__(self, sink: PartsSink, schemas: Schemas, tool: str) -> None:
        self._sink = sink
        self._schemas = schemas
        self._tool = tool
        self._has_any = False
        sink.arguments("{")

    def name(self, argument: str) -> None:
        # a name given twice stays twice: readers of JSON take the last
        separator = ", " if self._has_any else ""
        self._has_any = True
        self._sink.arguments(f"{separator}{_JSON.encode(argument)}: ")

    def whole(self, argument: str, text: str) -> None:
        self._sink.arguments(self._schemas.json_of(self._tool, argument, text))

    def piece(self, text: str) -> None:
        """More of a string that stands between two quotes put with `raw`."""
        self._sink.arguments(_JSON.encode(text)[1:-1])

    def raw(self, text: str) -> None:
        self._sink.arguments(text)

    def end(self) -> None:
        self._sink.arguments("}")


class TaggedParameters:
    """Reads the arguments of one call, up to what is no parameter any more."""

    def __init__(self, context: ReplyContext, tags: ParameterTags) -> None:
        self._reader = context.reader
        self._sink = context.sink
        self._schemas = context.schemas
        self._tags = tags
        self._open = context.spelled(tags.open)
        self._named = context.needles(*tags.named)
        self._close = context.needles(*tags.close)

    def read(self, tool: str) -> Reading[None]:
        """All of them, into the call that has begun. Where the reply ends in one, the object stays open."""
        arguments = Arguments(self._sink, self._schemas, tool)
        while True:
            yield from self._reader.space()
            opened = yield from self._reader.take_any(self._open)
            if not opened:
                break
            name, named = yield from self._reader.take_until(self._named, MAX_NAME_CHARS)
            if not named:
                arguments.end()
                self._sink.text(opened + name)
                return
            if not (yield from self._value(arguments, tool, name.strip(), named)):
                return
        arguments.end()

    def _value(self, arguments: Arguments, tool: str, name: str, named: str) -> Reading[bool]:
        """One value; whether it was closed."""
        arguments.name(name)
        is_string = self._tags.spoken_type.get(named)
        if self._tags.trims:
            yield from self._reader.take("\n")
        if is_string or (is_string is None and self._schemas.is_string(tool, name)):
            arguments.raw('"')
            text = _Trimmed(arguments, trims=self._tags.trims)
            closed = yield from self._reader.copy_until(self._close, text.add)
            if closed:
                arguments.raw('"')
            return bool(closed)
        pieces: list[str] = []
        closed = yield from self._reader.copy_until(self._close, pieces.append)
        whole = "".join(pieces)
        if closed:
            arguments.whole(name, whole.removesuffix("\n") if self._tags.trims else whole)
        else:
            arguments.raw(whole)
        return bool(closed)


class _Trimmed:
    """A string as it comes, without one line feed at its end."""

    def __init__(self, arguments: Arguments, *, trims: bool) -> None:
        self._arguments = arguments
        self._trims = trims
        self._held = ""

    def add(self, text: str) -> None:
        text = self._held + text
        self._held = "\n" if self._trims and text.endswith("\n") else ""
        self._arguments.piece(text[: len(text) - len(self._held)])
