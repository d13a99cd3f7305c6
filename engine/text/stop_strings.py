"""Finds stop strings in a text that comes in pieces.

One object a request, on the engine thread. No torch. Every character costs one step per stop string
(Knuth, Morris, Pratt: Fast pattern matching in strings, 1977).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class StopResult(NamedTuple):
    """What may be shown now, and whether a stop string has ended the text."""

    text: str
    stopped: bool


class StopMatcher:
    """Holds back what may yet turn out to be the beginning of a stop string.

    The text ends before the stop string that is complete first (of two that end together, the
    longer), however the text is cut into pieces.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = [_Progress(stop) for stop in stops]
        self._held = ""
        self._stopped = False
        self.found = ""
        """The stop string that has ended the text."""

    def push(self, text: str) -> StopResult:
        """Take more text; after a stop there is nothing more to show."""
        if self._stopped or not self._stops:
            return StopResult("" if self._stopped else text, self._stopped)
        seen = self._held + text
        for place, char in enumerate(text, start=len(self._held) + 1):
            complete = [stop.text for stop in self._stops if stop.advance(char)]
            if complete:
                self._stopped = True
                self._held = ""
                self.found = max(complete, key=len)
                return StopResult(seen[: place - len(self.found)], stopped=True)
        shown = len(seen) - max(stop.matched for stop in self._stops)
        self._held = seen[shown:]
        return StopResult(seen[:shown], stopped=False)

    def flush(self) -> str:
        """What was held back, when no more text comes."""
        held, self._held = self._held, ""
        return held


class _Progress:
    """How much of one stop string the text now ends with."""

    def __init__(self, stop: str) -> None:
        self.text = stop
        self.matched = 0
        self._shorter = [0] * (len(stop) + 1)
        """For each length matched, the next shorter beginning that the match ends with."""
        for place in range(1, len(stop)):
            self._shorter[place + 1] = self._next(self._shorter[place], stop[place])

    def advance(self, char: str) -> bool:
        """Take one character; whether the stop string is complete."""
        self.matched = self._next(self.matched, char)
        return self.matched == len(self.text)

    def _next(self, matched: int, char: str) -> int:
        while matched and (matched == len(self.text) or self.text[matched] != char):
            matched = self._shorter[matched]
        return matched + 1 if self.text[matched] == char else 0
