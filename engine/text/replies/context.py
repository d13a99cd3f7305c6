"""What the reader of one reply is given. One object a request, on the engine thread. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.text.replies.marks import Marks
from engine.text.replies.parts import PartsSink
from engine.text.replies.reader import Needles, Reader, Reading
from engine.text.replies.schemas import Schemas


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What reading one reply needs to know."""

    marks: Marks
    schemas: Schemas
    reader: Reader
    sink: PartsSink
    dropped: tuple[str, ...] = ()
    """Tags that wrap the text and are none of it."""

    def needles(self, *spelled: str) -> Needles:
        return self.marks.needles(*spelled)

    def spelled(self, tags: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.marks.pattern(tag) for tag in tags)

    def copy_text(self, opens: Needles) -> Reading[str]:
        """Text up to one of `opens`; "" at the end. `opens` has the dropped tags too."""
        dropped = self.spelled(self.dropped)
        while True:
            found = yield from self.reader.copy_until(opens, self.sink.text)
            if not found or found not in dropped:
                return found
