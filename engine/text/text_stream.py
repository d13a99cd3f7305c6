"""Token ids of one reply to what its reader hears: whole characters, ended by stop strings, perhaps told apart.

A stop string counts in the text and in the arguments of calls, not in what the model thinks.

One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.api import ToolCallDelta
from engine.text.call_stops import CallStops
from engine.text.detokenizer import Detokenizer
from engine.text.replies.parts import Parts
from engine.text.replies.reply_format import ReplyParser
from engine.text.stop_strings import StopMatcher
from engine.text.tokenizer import Tokenizer


class Told(NamedTuple):
    """What may be shown now, and whether the reply has ended: by a stop string, or with the last call it may make."""

    text: str = ""
    has_ended: bool = False
    reasoning: str = ""
    calls: tuple[ToolCallDelta, ...] = ()

    @classmethod
    def joined(cls, tolds: Iterable[Told]) -> Told:
        """Several, one after another, as one."""
        tolds = list(tolds)
        return cls(
            "".join(told.text for told in tolds),
            any(told.has_ended for told in tolds),
            "".join(told.reasoning for told in tolds),
            tuple(call for told in tolds for call in told.calls),
        )


class TextStream:
    """Detokenises and watches for stop strings; after a stop nothing more comes out.

    `continues` as in `Detokenizer`: true for a completion of raw text, false for a reply in a chat. Without a parser
    everything is text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Iterable[str] = (),
        *,
        continues: bool = False,
        parser: ReplyParser | None = None,
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, continues=continues)
        stops = tuple(stops)
        self._matcher = StopMatcher(stops)
        self._call_stops = CallStops(stops)
        self._parser = parser

    @property
    def stop_text(self) -> str:
        """The stop string that has ended the reply."""
        return self._matcher.found or self._call_stops.found

    @property
    def has_called(self) -> bool:
        """Whether the reply has ended its turn with calls, as far as it goes."""
        return self._parser is not None and self._parser.num_calls > 0 and not self.stop_text

    def push(self, token_id: int) -> Told:
        """Take the next token."""
        text = self._detokenizer.push(token_id)
        if self._parser is None:
            return Told(*self._matcher.push(text))
        parts = self._parser.push(text + self._parser.marks.by_id.get(token_id, ""))
        return self._told(parts, self._parser)

    def finish(self) -> Told:
        """The rest, when no more tokens come."""
        text = self._detokenizer.flush()
        if self._parser is None:
            return Told(self._matcher.push(text).text + self._matcher.flush())
        parts = (self._parser.push(text), self._parser.finish())
        told = Told.joined(self._told(each, self._parser) for each in parts)
        return told._replace(
            text=told.text + self._matcher.flush(), calls=told.calls + self._call_stops.flush()
        )

    def _told(self, parts: Parts, parser: ReplyParser) -> Told:
        """Parts up to a stop string in the text or in the arguments of a call."""
        if self.stop_text:
            return Told(has_ended=True)
        shown, stopped = self._matcher.push(parts.text)
        calls = self._call_stops.push(parts.calls, num_ended=parser.num_ended_calls)
        has_ended = stopped or bool(self._call_stops.found) or parser.is_full
        return Told(shown, has_ended, parts.reasoning, calls)
