"""Replies whose calls stand between tags, in the middle of text: how most families write them.

A reader of a reply is made once for each, and reads all that comes after the reasoning. Engine thread. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.text.replies.context import ReplyContext
from engine.text.replies.json_calls import USUAL, CallKeys, JsonCalls, ValueEnd
from engine.text.replies.reader import Needles, Reading
from engine.text.replies.xml_calls import MAX_NAME_CHARS, ParameterTags, TaggedParameters

ReadReply = Callable[[ReplyContext], Reading[None]]
"""Reads a reply to its end, or to where as many calls were made as may be."""
ReadBody = Callable[[ReplyContext, str], Reading[bool]]
"""Reads calls after an opening tag, which is its last argument. False: it knows nothing of this and has read nothing;
True: it has seen to it, and whatever is no call, the tag too, is text."""


def text_alone(context: ReplyContext) -> Reading[None]:
    """A reply in which no calls are looked for."""
    yield from context.copy_text(context.needles(*context.dropped))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedCalls:
    """`open` calls `close`, any number of times."""

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    bodies: tuple[ReadBody, ...]
    """They are asked in order."""
    dropped: tuple[str, ...] = ()

    def __call__(self, context: ReplyContext) -> Reading[None]:
        opens = context.needles(*self.open, *self.dropped, *context.dropped)
        dropped = context.spelled(self.dropped)
        while not context.sink.is_full:
            found = yield from context.copy_text(opens)
            if not found:
                return
            if found not in dropped:
                yield from self._calls(context, found)

    def _calls(self, context: ReplyContext, found: str) -> Reading[None]:
        reader, sink = context.reader, context.sink
        calls_before = sink.num_calls
        before = found + (yield from reader.space())
        for body in self.bodies:
            if (yield from body(context, before)):
                break
        else:
            sink.text(before)
            return
        space = yield from reader.space()
        closed = yield from reader.take_any(context.spelled(self.close))
        if sink.num_calls == calls_before:
            sink.text(space + closed)
        else:
            sink.trim_text()


# --- what stands between the tags


@dataclass(frozen=True, slots=True)
class JsonBody:
    """`{"name": …, "arguments": {…}}`, one after another or in a list; anything else is text."""

    keys: CallKeys = USUAL

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        if (yield from context.reader.peek()) not in ("{", "["):
            return False
        yield from JsonCalls(context.reader, context.sink, keys=self.keys).all(before)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionBody:
    """`open`NAME`named` arguments one by one `close`, one after another."""

    open: tuple[str, ...]
    named: tuple[str, ...] = (">",)
    close: tuple[str, ...]
    parameters: ParameterTags

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        reader, opens = context.reader, context.spelled(self.open)
        found = before in opens
        if found:
            yield from self._one(context, before)
            before = yield from reader.space()
        while not context.sink.is_full:
            opened = yield from reader.take_any(opens)
            if not opened:
                break
            yield from self._one(context, before + opened)
            found = True
            before = yield from reader.space()
        if found:
            reader.put_back(before)
        return found

    def _one(self, context: ReplyContext, before: str) -> Reading[None]:
        reader, sink = context.reader, context.sink
        name, named = yield from reader.take_until(context.needles(*self.named), MAX_NAME_CHARS)
        if not named or not name.strip():
            sink.text(before + name + named)
            return
        sink.begin_call(name.strip())
        yield from TaggedParameters(context, self.parameters).read(name.strip())
        sink.end_call()
        space = yield from reader.space()
        if not (yield from reader.take_any(context.spelled(self.close))):
            reader.put_back(space)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedBody:
    """NAME, then arguments one by one; what ends the name is left for them."""

    ends: tuple[str, ...]
    parameters: ParameterTags

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        reader, sink = context.reader, context.sink
        name, end = yield from reader.take_until(context.needles(*self.ends), MAX_NAME_CHARS)
        if not end or not name.strip():
            sink.text(before + name + end)
            return True
        reader.put_back(end)
        sink.begin_call(name.strip())
        yield from TaggedParameters(context, self.parameters).read(name.strip())
        sink.end_call()
        return True


def whole_name(head: str) -> tuple[str, str]:
    """A head that is the name."""
    return head, ""


_LINE_END = Needles(["\n"])
_FENCES = ("```json", "```")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadedBody:
    """Calls as `open` HEAD `separator` {arguments} `close`, one after another; the head has the name, perhaps an id."""

    open: tuple[str, ...] = ()
    """Empty: what stood before them is the opening tag of the only one."""
    separators: tuple[str, ...]
    close: tuple[str, ...] = ()
    split: Callable[[str], tuple[str, str]] = whole_name
    """A head into name and id."""
    has_fence: bool = False
    """The head may be the call's kind; then the name is the rest of the line and the arguments are fenced."""

    def __call__(self, context: ReplyContext, before: str) -> Reading[bool]:
        reader = context.reader
        if not self.open:
            yield from self._one(context, before)
            return True
        found = False
        while not context.sink.is_full:
            opened = yield from reader.take_any(context.spelled(self.open))
            if not opened:
                break
            found = True
            if not (yield from self._one(context, before + opened)):
                return True
            before = yield from reader.space()
        if found:
            reader.put_back(before)
        return found

    def _one(self, context: ReplyContext, before: str) -> Reading[bool]:
        """One call after its opening tag; whether it was one, else it is text."""
        reader, sink = context.reader, context.sink
        separators = context.needles(*self.separators)
        head, separator = yield from reader.take_until(separators, MAX_NAME_CHARS)
        raw = before + head + separator
        name, call_id = self.split(head.strip())
        if separator:
            raw += yield from reader.space()
            if self.has_fence and (yield from reader.peek()) != "{":
                name, end = yield from reader.take_until(_LINE_END, MAX_NAME_CHARS)
                raw += name + end + (yield from reader.take_any(_FENCES))
                raw += yield from reader.space()
        is_name = len(name.split()) == 1 and len(head.split()) == 1
        if not separator or not is_name or (yield from reader.peek()) != "{":
            sink.text(raw)
            return False
        sink.begin_call(name.strip(), call_id)
        yield from reader.copy_while(ValueEnd(), sink.arguments)
        sink.end_call()
        space = yield from reader.space()
        if self.has_fence and (yield from reader.take("```")):
            space = yield from reader.space()
        if not (yield from reader.take_any(context.spelled(self.close))):
            reader.put_back(space)
        return True
