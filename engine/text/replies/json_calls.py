"""Calls that models write as JSON objects, alone, in lists or one after another, with the names they have for things.

The name and the arguments are told as they come: arguments in the model's own spelling, piece by piece. An object that
turns out to be no call comes out as text. Engine thread. No torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from engine.text.replies.parts import PartsSink
from engine.text.replies.reader import Reader, Reading

_IN_STRING = re.compile('["\\\\\udc00-\udfff]')
_OUTSIDE = re.compile('["{}\\[\\]<\udc00-\udfff]')
_SCALAR_END = re.compile('[\\s,}\\]"{\\[:<\udc00-\udfff]')
_BETWEEN = ",;"


class ValueEnd:
    """Finds the end of one JSON value, by brackets and quotes alone; called with each stretch of text once."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._has_begun = False

    def __call__(self, text: str) -> int:
        """Where the value ends, at the latest where no JSON goes on; -1: not in here."""
        at = 0
        while at < len(text):
            if self._is_escaped:
                self._is_escaped = False
                at += 1
                continue
            match = self._pattern().search(text, at)
            if match is None:
                self._has_begun = True
                return -1
            at, char = match.start(), match[0]
            end = self._step(char, at)
            if end >= 0:
                return end
            at += 1
        return -1

    def _pattern(self) -> re.Pattern[str]:
        if self._in_string:
            return _IN_STRING
        return _OUTSIDE if self._depth else _SCALAR_END

    def _step(self, char: str, at: int) -> int:
        """Take the character at `at`; where the value ends, -1 if it goes on."""
        if self._in_string:
            if char == "\\":
                self._is_escaped = True
            elif char == '"':
                self._in_string = False
                return -1 if self._depth else at + 1
            else:
                return at  # a control token ends whatever was being written
        elif char == '"' and (self._depth or not (self._has_begun or at)):
            self._in_string = True
        elif char in "{[" and (self._depth or not (self._has_begun or at)):
            self._depth += 1
        elif char in "}]" and self._depth:
            self._depth -= 1
            return -1 if self._depth else at + 1
        else:
            return at
        self._has_begun = True
        return -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKeys:
    """What a format calls the parts of a call."""

    name: Collection[str] = ("name", "tool_name")
    arguments: Collection[str] = ("arguments", "parameters", "args")
    call_id: Collection[str] = ()
    nested: Collection[str] = ("function", "tool_call")
    """Objects that the call itself may be in."""
    passed_over: Collection[str] = ("type", "id", "tool_call_id", "description")
    """What may stand before the arguments; after them, anything may."""
    is_by_name: bool = False
    """`{"NAME": {arguments}}`."""


USUAL = CallKeys()


@dataclass(slots=True)
class _Call:
    """One object being read."""

    name: str = ""
    call_id: str = ""
    arguments: str | None = None
    """They came before the name."""
    has_begun: bool = False
    has_arguments: bool = False


class JsonCalls:
    """Reads call objects. `known` are the names that a call may have, None for any name."""

    def __init__(
        self,
        reader: Reader,
        sink: PartsSink,
        *,
        keys: CallKeys = USUAL,
        known: Collection[str] | None = None,
    ) -> None:
        self._reader = reader
        self._sink = sink
        self._keys = keys
        self._known = known
        self._raw: list[str] = []
        """What has been read of an object that may yet be no call."""

    def all(self, before: str = "") -> Reading[bool]:
        """A list of calls, or calls one after another; whether there was one.

        `before` is what stood before them: it is text too if there is none.
        """
        self._raw = [before]
        yield from self._space()
        is_list = yield from self._took("[")
        found = False
        while True:
            yield from self._space()
            if (yield from self._reader.peek()) == "{":
                if not (yield from self.one()):
                    return found
                found = True
            elif found and is_list and (yield from self._took("]")):
                self._raw.clear()
                return True
            elif not found or not (yield from self._took(_BETWEEN)):
                self._give_up(found=found)
                return found

    def one(self) -> Reading[bool]:
        """One object, which is next; whether it was a call, else it is text."""
        yield from self._took("{")
        if self._keys.is_by_name:
            return (yield from self._by_name())
        call = _Call()
        depth = 1
        while depth:
            step = yield from self._member(call)
            if step is None:
                return self._failed(call)
            depth += step
        return self._end(call)

    # --- parts

    def _took(self, chars: str) -> Reading[bool]:
        """Read one of `chars` if it is what comes next."""
        char = yield from self._reader.peek()
        if not char or char not in chars:
            return False
        yield from self._reader.take(char)
        self._raw.append(char)
        return True

    def _member(self, call: _Call) -> Reading[int | None]:
        """One key and its value, or an end: how the depth changes; None where it is no call."""
        yield from self._space()
        if (yield from self._took("}")):
            return -1
        if (yield from self._took(",")):
            return 0
        key = yield from self._key()
        if key is None:
            return None
        if key in self._keys.nested and (yield from self._reader.peek()) == "{":
            yield from self._took("{")
            return 1
        if key in self._keys.arguments:
            return 0 if (yield from self._arguments(call)) else None
        value = yield from self._value()
        if value is None:
            return None
        if key in self._keys.name or key in self._keys.nested:
            if not value.startswith('"') or not self._take_name(call, _text_of(value)):
                return None
        elif key in self._keys.call_id and not call.has_begun:
            call.call_id = _text_of(value)
        elif key not in self._keys.passed_over and not call.has_begun:
            return None
        return 0

    def _by_name(self) -> Reading[bool]:
        """The rest of an object whose one key is a tool's name and whose value are the arguments."""
        yield from self._space()
        call = _Call(name=(yield from self._key()) or "")
        if not call.name or (yield from self._reader.peek()) != "{":
            return self._failed(_Call())
        yield from self._arguments(call)
        yield from self._space()
        yield from self._took("}")
        return self._end(call)

    def _space(self) -> Reading[None]:
        self._raw.append((yield from self._reader.space()))

    def _key(self) -> Reading[str | None]:
        """A key and its colon; None if there is none."""
        if (yield from self._reader.peek()) != '"':
            return None
        value = yield from self._value()
        yield from self._space()
        if value is None or not (yield from self._took(":")):
            return None
        yield from self._space()
        return _text_of(value)

    def _value(self) -> Reading[str | None]:
        """One value, whole; None if it ends too early."""
        pieces: list[str] = []
        is_whole = yield from self._reader.copy_while(ValueEnd(), pieces.append)
        self._raw += pieces
        value = "".join(pieces)
        if not value or (value[0] in '"{[' and not _is_closed(value)):
            return None
        return value if is_whole else None

    def _take_name(self, call: _Call, name: str) -> bool:
        if not name or (self._known is not None and name not in self._known) or call.name:
            return False
        call.name = name
        if call.arguments is not None:
            self._begin(call)
            self._put(call.arguments)
        return True

    def _arguments(self, call: _Call) -> Reading[bool]:
        """The arguments: told at once where the name is known. Whether they are whole."""
        if call.has_arguments or call.arguments is not None:
            return False
        if not call.name or (yield from self._reader.peek()) != "{":
            call.arguments = yield from self._value()
            if call.arguments is None:
                return False
            if call.name:
                self._begin(call)
                self._put(call.arguments)
                call.has_arguments = True
            return True
        self._begin(call)
        call.has_arguments = True
        return (yield from self._reader.copy_while(ValueEnd(), self._sink.arguments))

    def _begin(self, call: _Call) -> None:
        call.has_begun = True
        self._raw.clear()
        self._sink.begin_call(call.name, call.call_id)

    def _put(self, value: str) -> None:
        """Arguments that are no object as they stand: some models write the object's text, some nothing."""
        call_text = _text_of(value) if value.startswith('"') else value
        self._sink.arguments("{}" if call_text.strip() in ("", "null") else call_text)
        self._raw.clear()

    def _end(self, call: _Call) -> bool:
        """The object is whole."""
        if not call.name:
            return self._failed(call)
        if not call.has_begun:
            self._begin(call)
            self._sink.arguments("{}")
        self._raw.clear()
        self._sink.end_call()
        return True

    def _failed(self, call: _Call) -> bool:
        """No call, or the rest of one that had begun, which is not taken back."""
        if call.has_begun:
            self._raw.clear()
            self._sink.end_call()
            return True
        self._give_up(found=False)
        return False

    def _give_up(self, *, found: bool) -> None:
        """What was read is text after all; of what follows a call, white space is none."""
        text = "".join(self._raw)
        self._raw.clear()
        if text and not (found and text.isspace()):
            self._sink.text(text)


def json_calls(reader: Reader, sink: PartsSink, before: str) -> Reading[bool]:
    """Calls as most models write them."""
    return (yield from JsonCalls(reader, sink).all(before))


Body = Callable[[Reader, PartsSink, str], Reading[bool]]
"""Reads calls; its last argument is what is text too if there is none."""


def _text_of(value: str) -> str:
    """A JSON value as text: of a string its content."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, str) else value


def _is_closed(value: str) -> bool:
    return len(value) > 1 and value[-1] == {'"': '"', "{": "}", "[": "]"}[value[0]]
