"""Families whose replies are more than text with calls between tags: by channels, by recipients, by a first brace.

Engine thread. No torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.text.replies.context import ReplyContext
from engine.text.replies.json_calls import JsonCalls, ValueEnd
from engine.text.replies.reader import Needles, Reading
from engine.text.replies.xml_calls import MAX_NAME_CHARS

_MAX_HEADER_CHARS = 256
_FENCES = ("```json\n", "```\n", "```json")
_LINE_END = Needles(["\n"])


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReply:
    """Calls that are the whole reply, as JSON: after one of `opens`, in a fence, or bare.

    Bare JSON is a call only where it names one of the tools that were offered; everything else is text.
    """

    opens: tuple[str, ...] = ()
    wrapper: str = ""
    """Key of an object that may be around the list of calls."""

    def __call__(self, context: ReplyContext) -> Reading[None]:
        reader, sink = context.reader, context.sink
        before = yield from reader.space()
        before += yield from reader.take_any(context.spelled(self.opens))
        before += yield from reader.space()
        fence = yield from reader.take_any(_FENCES)
        before += fence + (yield from reader.space())
        if (yield from reader.peek()) in ("{", "["):
            wrapped = yield from self._unwrap(context)
            calls = JsonCalls(reader, sink, known=context.schemas.names)
            if (yield from calls.all(before + wrapped)):
                yield from reader.space()
                if wrapped and (yield from reader.take("}")):
                    yield from reader.space()
                if fence:
                    yield from reader.take("```")
                sink.trim_text()
        else:
            sink.text(before)
        if not sink.is_full:
            yield from context.copy_text(context.needles(*context.dropped))

    def _unwrap(self, context: ReplyContext) -> Reading[str]:
        """Read `{"WRAPPER":` if it comes next."""
        reader, raw = context.reader, ""
        if not self.wrapper:
            return ""
        for token in ("{", f'"{self.wrapper}"', ":"):
            space = yield from reader.space()
            if not (yield from reader.take(token)):
                reader.put_back(raw + space)
                return ""
            raw += space + token
        return raw


@dataclass(frozen=True, slots=True)
class MistralReply:
    """`[TOOL_CALLS]` before a JSON list, or before each call as NAME`[ARGS]`{…}, with `[CALL_ID]`id between in some."""

    def __call__(self, context: ReplyContext) -> Reading[None]:
        reader, sink = context.reader, context.sink
        opens = context.needles("[TOOL_CALLS]", *context.dropped)
        while not sink.is_full:
            found = yield from context.copy_text(opens)
            if not found:
                return
            before = found + (yield from reader.space())
            if (yield from reader.peek()) in ("[", "{"):
                yield from JsonCalls(reader, sink).all(before)
            else:
                yield from self._named(context, before)
            sink.trim_text()

    def _named(self, context: ReplyContext, before: str) -> Reading[None]:
        reader, sink = context.reader, context.sink
        needles = context.needles("[ARGS]", "[CALL_ID]", "{")
        name, end = yield from reader.take_until(needles, MAX_NAME_CHARS)
        raw, call_id = before + name + end, ""
        if end == context.marks.pattern("[CALL_ID]"):
            needles = context.needles("[ARGS]")
            call_id, args = yield from reader.take_until(needles, MAX_NAME_CHARS)
            raw += call_id + args
        elif end == "{":
            reader.put_back(end)
            raw = before + name
        raw += yield from reader.space()
        if not name.strip() or (yield from reader.peek()) != "{":
            sink.text(raw)
            return
        sink.begin_call(name.strip(), call_id.strip())
        yield from reader.copy_while(ValueEnd(), sink.arguments)
        sink.end_call()


@dataclass(frozen=True, slots=True)
class RecipientReply:
    """`>>>`RECIPIENT, a line feed and what it is for: `all` is text, a tool's name a call (functionary 3.2).

    The prompt ends with the first `>>>`.
    """

    def __call__(self, context: ReplyContext) -> Reading[None]:
        reader, sink = context.reader, context.sink
        before = (yield from reader.space()) + (yield from reader.take_any((">>>",)))
        opens = context.needles(">>>", *context.dropped)
        while not sink.is_full:
            name, end = yield from reader.take_until(_LINE_END, MAX_NAME_CHARS)
            if end and name.strip() in context.schemas.names:
                yield from self._call(context, before + name + end, name.strip())
            elif not end or name.strip() != "all":
                sink.text(before + name + end)
            before = yield from context.copy_text(opens)
            if not before:
                return

    def _call(self, context: ReplyContext, raw: str, name: str) -> Reading[None]:
        reader, sink = context.reader, context.sink
        raw += yield from reader.space()
        if (yield from reader.peek()) != "{":
            sink.text(raw)
            return
        sink.begin_call(name)
        yield from reader.copy_while(ValueEnd(), sink.arguments)
        sink.end_call()
        sink.trim_text()


@dataclass(frozen=True, slots=True)
class RoleReply:
    """Messages one after another, each with its role before it: that of a call follows the text (GigaChat 3.0)."""

    end: str
    """What ends a message."""
    role: str
    """What begins one with a call, which is JSON."""

    def __call__(self, context: ReplyContext) -> Reading[None]:
        reader, sink = context.reader, context.sink
        ends, (role,) = context.needles(self.end, *context.dropped), context.spelled((self.role,))
        while not sink.is_full:
            found = yield from context.copy_text(ends)
            if not found:
                return
            space = yield from reader.space()
            if not (yield from reader.take(role)):
                reader.put_back(space)
                sink.trim_text()
                continue
            before = found + space + role + (yield from reader.space())
            yield from JsonCalls(reader, sink).all(before)
            sink.trim_text()


_TO = re.compile(r"\bto=([^\s<]+)")
_HEADER_WORDS = frozenset({"assistant", "analysis", "commentary", "final", "json", "code"})
_LONGEST_HEADER_WORD = max(map(len, _HEADER_WORDS))


def _is_header(text: str) -> bool:
    """Whether a header that breaks off is nothing but one; its last word may be in pieces."""
    *words, last = text.split() or [""]
    return len(last) <= _LONGEST_HEADER_WORD and all(
        word in _HEADER_WORDS or word.startswith("to=") for word in words
    )


@dataclass(frozen=True, slots=True)
class ChannelReply:
    """Messages with a header each: the channel `analysis` is reasoning, a recipient makes a call (harmony).

    What comes without a header is text.
    """

    def __call__(self, context: ReplyContext) -> Reading[None]:
        reader, sink = context.reader, context.sink
        message = context.marks.pattern("<|message|>")
        heads = context.needles("<|message|>", "<|channel|>", "<|start|>", "<|end|>")
        ends = context.needles("<|end|>", "<|start|>", "<|call|>", "<|return|>", "<|channel|>")
        closing = context.spelled(("<|end|>", "<|start|>"))
        header, has_marks = "", False
        while not sink.is_full and (yield from reader.peek()):
            piece, found = yield from reader.take_until(heads, _MAX_HEADER_CHARS)
            if found and not has_marks and not _TO.search(piece):
                sink.text(piece)
                piece = ""
            header += piece
            if found == message:
                yield from self._body(context, header, ends)
                header, has_marks = "", True
            elif found in closing:
                sink.text(header)  # it never came to its message
                header, has_marks = "", True
            elif found and len(header) <= _MAX_HEADER_CHARS:
                header, has_marks = header + " ", True
            elif not has_marks or not _is_header(header):
                sink.text(header)
                yield from reader.copy_until(ends, sink.text)
                header, has_marks = "", True

    def _body(self, context: ReplyContext, header: str, ends: Needles) -> Reading[None]:
        reader, sink = context.reader, context.sink
        found = _TO.search(header)
        recipient = found[1].removeprefix("functions.") if found is not None else ""
        if recipient not in ("", "all", "user", "assistant"):
            yield from reader.space()
            sink.begin_call(recipient)
            yield from reader.copy_until(ends, sink.arguments)
            sink.end_call()
        elif "analysis" in header:
            yield from reader.copy_until(ends, sink.reasoning)
        else:
            yield from reader.copy_until(ends, sink.text)
