"""Where words stand in the messages of a chat. Pure; must not import Qt.

Looks in the text as it was written, so that a chat of any length is searched in no time, also where it was never laid
out; what is a hit on screen is the nth in its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from studio.models.chat import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """`start` is a place in the message's text."""

    message_id: int
    start: int


def find_all(messages: Sequence[Message], *texts: str) -> list[Hit]:
    """Every place where one of these texts stands, whatever its case."""
    wanted = [text.casefold() for text in texts if text]
    return [
        Hit(message.message_id, start)
        for message in messages
        for start in sorted({one for text in wanted for one in _starts(message.text, text)})
    ]


def _starts(text: str, wanted: str) -> Iterator[int]:
    folded = text.casefold()
    if len(folded) != len(text):  # a letter became two: places would be wrong
        folded = text.lower() if len(text.lower()) == len(text) else text
    start = folded.find(wanted)
    while start >= 0:
        yield start
        start = folded.find(wanted, start + len(wanted))
