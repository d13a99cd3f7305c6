"""Tags between which models think before they answer. Engine thread. No torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.text.replies.context import ReplyContext
from engine.text.replies.reader import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """One way of writing it. A later `open` in the same reply is text; `close` at its beginning ends no thoughts."""

    open: str
    close: str
    dropped: tuple[str, ...] = ()
    """Tags around the answer that follows, where the template has them."""

    def read(self, context: ReplyContext, *, is_open: bool) -> Reading[bool]:
        """The reasoning at the beginning of a reply; whether there was any. `is_open`: the prompt has begun it."""
        reader, sink = context.reader, context.sink
        opened = context.marks.pattern(self.open)
        space = yield from reader.space()
        if not (yield from reader.take(opened)) and not is_open:
            if (yield from reader.take(context.marks.pattern(self.close))):
                sink.trim_text()
                return True
            reader.put_back(space)
            return False
        yield from reader.copy_until(context.needles(self.close), sink.reasoning)
        sink.end_reasoning()
        sink.trim_text()
        return True


THINKING = (
    Thinking(open="<think>", close="</think>", dropped=("<response>", "</response>")),
    Thinking(open="[THINK]", close="[/THINK]"),
    Thinking(open="<seed:think>", close="</seed:think>"),
    Thinking(open="\u25c1think\u25b7", close="\u25c1/think\u25b7"),
    Thinking(open="<mm:think>", close="</mm:think>"),
    Thinking(open="<|START_THINKING|>", close="<|END_THINKING|>"),
    Thinking(open="<|inner_prefix|>", close="<|inner_suffix|>"),
    Thinking(open="<|channel>thought\n", close="<channel|>"),
    Thinking(open="<|think|>", close="<|end|>"),
    Thinking(open="<thinking>", close="</thinking>"),
)
"""The first whose tags both stand in a template is the template's."""


def thinking_of(source: str, has_token: Callable[[str], bool]) -> Thinking | None:
    """How the model of a template thinks; by its vocabulary where the template does not say."""
    for thinking in THINKING:
        if thinking.open.strip() in source and thinking.close in source:
            dropped = tuple(tag for tag in thinking.dropped if tag in source)
            return replace(thinking, dropped=dropped)
    first = THINKING[0]
    return replace(first, dropped=()) if has_token(first.open) and has_token(first.close) else None
