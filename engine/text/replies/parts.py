"""What a parser has told apart: text, reasoning and pieces of calls, until the stepper takes them.

One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from engine.api import ToolCallDelta
from engine.text.replies.marks import Marks

MAX_HELD_SPACE = 64
"""White space before a call or the end of reasoning is no text; more than that is."""
_ID_CHARS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_CHARS = 9
"""Some templates take ids of exactly this length."""


class Parts(NamedTuple):
    """New since the last time."""

    text: str
    reasoning: str
    calls: tuple[ToolCallDelta, ...]


NOTHING = Parts("", "", ())


class _Prose:
    """Text or reasoning, with the white space at its end held back and, if wished, none at its beginning."""

    def __init__(self, *, trims_start: bool) -> None:
        self._at_start = trims_start
        self._pieces: list[str] = []
        self._space = ""

    def trim_start(self) -> None:
        self._at_start = True

    def add(self, piece: str) -> None:
        if self._at_start:
            piece = piece.lstrip()
            if not piece:
                return
            self._at_start = False
        if not self._space and not piece[-1:].isspace():
            self._pieces.append(piece)
            return
        seen = self._space + piece
        shown = max(len(seen.rstrip()), len(seen) - MAX_HELD_SPACE)
        if shown:
            self._pieces.append(seen[:shown])
        self._space = seen[shown:]

    def passed(self, piece: str) -> str:
        if self._at_start:
            piece = piece.lstrip()
            self._at_start = not piece
        return piece

    def drop_space(self) -> None:
        self._space = ""

    def let_go(self) -> None:
        if self._space:
            self._pieces.append(self._space)
            self._space = ""

    def take(self) -> str:
        if not self._pieces:
            return ""
        text = "".join(self._pieces)
        self._pieces.clear()
        return text


@dataclass(slots=True)
class _Calls:
    """The calls begun so far."""

    count: int = 0
    ended: int = 0


class PartsSink:
    """Where parsers put what they find. `seed` makes the ids of calls: the same for the same reply."""

    def __init__(self, marks: Marks, seed: str, *, most_calls: int | None = None) -> None:
        self._marks = marks
        self._seed = seed
        self._most_calls = most_calls
        self._text = _Prose(trims_start=False)
        self._reasoning = _Prose(trims_start=True)
        self._deltas: list[ToolCallDelta] = []
        self._pieces: list[str] = []
        """Of the arguments of the call begun last."""
        self._calls = _Calls()

    @property
    def num_calls(self) -> int:
        return self._calls.count

    @property
    def num_ended(self) -> int:
        """Calls whose arguments are complete."""
        return self._calls.ended

    @property
    def is_full(self) -> bool:
        """Whether as many calls have ended as may be made."""
        return self._most_calls is not None and self._calls.ended >= self._most_calls

    def text(self, piece: str) -> None:
        self._text.add(self._marks.plain(piece))

    def pass_text(self, piece: str) -> str:
        """Text that nothing else can follow; what of it is shown."""
        return self._text.passed(self._marks.plain(piece))

    def trim_text(self) -> None:
        """White space that comes next is none of the text."""
        self._text.trim_start()

    def reasoning(self, piece: str) -> None:
        self._reasoning.add(self._marks.plain(piece))

    def end_reasoning(self) -> None:
        """The white space before its end is none of it."""
        self._reasoning.drop_space()

    def begin_call(self, name: str, call_id: str = "") -> None:
        self._text.drop_space()
        self._put_pieces()
        index = self._calls.count
        self._calls.count += 1
        call_id = call_id or new_call_id(f"{self._seed}/{index}")
        self._deltas.append(ToolCallDelta(index=index, call_id=call_id, name=name))

    def arguments(self, piece: str) -> None:
        """More of the call that was begun last."""
        self._pieces.append(self._marks.plain(piece))

    def end_call(self) -> None:
        self._calls.ended = self._calls.count

    def forget(self) -> None:
        """What has been told and held back so far is known already."""
        self._text.drop_space()
        self._reasoning.drop_space()
        self.take()

    def finish(self) -> None:
        """Nothing more comes: what was held back is shown."""
        self._text.let_go()
        self._reasoning.let_go()

    def take(self) -> Parts:
        text, reasoning = self._text.take(), self._reasoning.take()
        self._put_pieces()
        if not self._deltas:
            return Parts(text, reasoning, ()) if text or reasoning else NOTHING
        calls = tuple(self._deltas)
        self._deltas.clear()
        return Parts(text, reasoning, calls)

    def _put_pieces(self) -> None:
        arguments = "".join(self._pieces)
        self._pieces.clear()
        if arguments:
            self._deltas.append(ToolCallDelta(index=self._calls.count - 1, arguments=arguments))


def new_call_id(seed: str) -> str:
    """Nine letters and digits, drawn from `seed`."""
    number = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest())
    chars = []
    for _ in range(ID_CHARS):
        number, place = divmod(number, len(_ID_CHARS))
        chars.append(_ID_CHARS[place])
    return "".join(chars)
