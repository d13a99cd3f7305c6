"""How the model of one chat template writes its replies, and the parser of one reply.

A format is made with the template; a parser with each request that tells its parts apart, on the engine thread. A
parser never fails: what it cannot make sense of is text. No torch.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from engine.api import Tool
from engine.text.replies.context import ReplyContext
from engine.text.replies.families import family_of
from engine.text.replies.family import Family
from engine.text.replies.json_families import GENERIC
from engine.text.replies.marks import Marks
from engine.text.replies.parts import NOTHING, Parts, PartsSink
from engine.text.replies.reader import Reader, Reading
from engine.text.replies.schemas import Schemas
from engine.text.replies.tagged import text_alone
from engine.text.replies.thinking import Thinking, thinking_of
from engine.text.tokenizer import Tokenizer

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyPlan:
    """What reading one reply depends on beside its model's format."""

    tools: tuple[Tool, ...] = ()
    """Those that may be called."""
    is_generic: bool = False
    """They were described in plain words."""
    is_thinking: bool = False
    """The prompt has begun the reasoning."""
    begun: str = ""
    """Text that the reply goes on with."""
    most_calls: int | None = None
    must_call: bool = False
    """It is nothing but calls: what is held back at the end is one that was cut, and no text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFormat:
    """One template's. Immutable, any thread."""

    family: Family
    thinking: Thinking | None
    marks: Marks
    """Without tools."""
    marks_with_tools: Marks

    @classmethod
    def of(cls, source: str, tokenizer: Tokenizer) -> ReplyFormat:
        """By the source of a template, and by the vocabulary."""
        family = family_of(source)
        own = family.has_own_reasoning
        thinking = family.thinking
        if thinking is None and not own:
            thinking = thinking_of(source, tokenizer.added_contents.__contains__)
        tags = (thinking.open, thinking.close, *thinking.dropped) if thinking is not None else ()
        with_tools = Marks((*tags, *family.marks), tokenizer)
        alone = with_tools if own else Marks(tags, tokenizer)
        return cls(family=family, thinking=thinking, marks=alone, marks_with_tools=with_tools)

    def planned(self, plan: ReplyPlan) -> ReplyFormat:
        """The same for one reply."""
        return (
            replace(self, family=GENERIC, marks_with_tools=self.marks) if plan.is_generic else self
        )

    def has_parts(self, plan: ReplyPlan) -> bool:
        """Whether a reply may have more than text."""
        return bool(plan.tools) or self.thinking is not None or self.family.has_own_reasoning

    def is_thinking(self, rendered: str) -> bool:
        """Whether a rendered prompt ends with the reasoning begun."""
        thinking = self.thinking
        return thinking is not None and rendered.rstrip().endswith(thinking.open.strip())


class ReplyParser:
    """Reads one reply piece by piece. `seed` makes the ids of its calls: the same for the same reply."""

    def __init__(self, reply: ReplyFormat, plan: ReplyPlan, *, seed: str) -> None:
        reply = reply.planned(plan)
        self.marks = reply.marks_with_tools if plan.tools else reply.marks
        self._reader = Reader()
        self._sink = PartsSink(self.marks, seed, most_calls=plan.most_calls)
        self._reading = self._read(reply, plan)
        self._must_call = plan.must_call
        self._is_reading = True
        self._go_on()
        if plan.begun:
            self.push(plan.begun)
            self._sink.forget()

    @property
    def num_calls(self) -> int:
        """Calls begun so far."""
        return self._sink.num_calls

    @property
    def num_ended_calls(self) -> int:
        """Those of them that are complete."""
        return self._sink.num_ended

    @property
    def is_full(self) -> bool:
        """Whether as many calls have been made as may be: nothing that follows would be told."""
        return self._sink.is_full

    def push(self, text: str) -> Parts:
        """More of the reply, with marks for control tokens; what can be told now."""
        if not text or self.is_full:
            return NOTHING
        if self._is_reading:
            self._reader.feed(text)
            self._go_on()
            return self._sink.take()
        return Parts(self._sink.pass_text(text), "", ())

    def finish(self) -> Parts:
        """The reply has ended; the rest."""
        if self._is_reading:
            self._reader.end()
            self._go_on()
        rest = self._sink.take()
        return rest._replace(text="") if self._must_call else rest

    def _go_on(self) -> None:
        try:
            next(self._reading)
            return
        except StopIteration:
            pass
        except Exception:  # noqa: BLE001 - whatever a model writes must not end the step
            _LOG.exception("a reply could not be told apart; the rest of it is text")
        self._is_reading = False
        if not self.is_full:
            self._sink.text(self._reader.rest())
        self._sink.finish()

    def _read(self, reply: ReplyFormat, plan: ReplyPlan) -> Reading[None]:
        context = ReplyContext(self.marks, Schemas(plan.tools), self._reader, self._sink)
        thinking = reply.thinking
        if thinking is not None and (yield from thinking.read(context, is_open=plan.is_thinking)):
            context = replace(context, dropped=thinking.dropped)
        if plan.tools or reply.family.has_own_reasoning:
            yield from reply.family.read(context)
        elif context.dropped:
            yield from text_alone(context)
