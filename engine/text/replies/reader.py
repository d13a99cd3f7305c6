"""A text that comes in pieces, read as if it were there: parsers are generators that pause where it ends for now.

A parser says `yield from reader.…`; whoever drives it feeds a piece and resumes it. Whatever a parser does depends on
the text alone, never on how it was cut. Time is linear: what has been read is not kept, and what is held back is
shorter than the longest needle. One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]
"""Runs until it needs more text, over and over; returns T."""
Emit = Callable[[str], object]

_SPACE = re.compile(r"\s*")


class Needles:
    """Texts to look for: the leftmost wins, of two at one place the longer."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(sorted(filter(None, texts), key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._texts)) or "(?!)")
        firsts = "".join(re.escape(text[0]) for text in self._texts)
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")
        self._longest = max(map(len, self._texts), default=1)

    def find(self, text: str) -> tuple[int, str]:
        """Where the first one begins and which it is; or how much holds no beginning of one, and ""."""
        first = self._first.search(text)
        if first is None:
            return len(text), ""
        match = self._pattern.search(text, first.start())
        if match is not None:
            return match.start(), match[0]
        begin = max(len(text) - self._longest + 1, first.start())
        for first in self._first.finditer(text, begin):
            tail = text[first.start() :]
            if any(needle.startswith(tail) for needle in self._texts):
                return first.start(), ""
        return len(text), ""


class Reader:
    """The text not read yet."""

    def __init__(self) -> None:
        self._text = ""
        self._has_ended = False

    # for the driver

    def feed(self, text: str) -> None:
        self._text += text

    def end(self) -> None:
        """No more comes."""
        self._has_ended = True

    def rest(self) -> str:
        """Takes all that is there."""
        text, self._text = self._text, ""
        return text

    # for parsers

    def more(self) -> Reading[bool]:
        """Wait for text beyond what is there; False at the end."""
        before = len(self._text)
        while len(self._text) == before:
            if self._has_ended:
                return False
            yield
        return True

    def peek(self) -> Reading[str]:
        """The next character, "" at the end."""
        if not self._text:
            yield from self.more()
        return self._text[:1]

    def take(self, text: str) -> Reading[bool]:
        """Read `text` if it is what comes next."""
        while len(self._text) < len(text) and text.startswith(self._text):
            if not (yield from self.more()):
                return False
        if not self._text.startswith(text):
            return False
        self._text = self._text[len(text) :]
        return True

    def put_back(self, text: str) -> None:
        """What was read last is read again."""
        self._text = text + self._text

    def take_any(self, texts: Iterable[str]) -> Reading[str]:
        """Read the first of `texts` that is what comes next; "" if none is."""
        for text in texts:
            if text and (yield from self.take(text)):
                return text
        return ""

    def space(self) -> Reading[str]:
        """Read white space, all there is."""
        parts = []
        while True:
            match = _SPACE.match(self._text)
            used = match.end() if match is not None else 0
            parts.append(self._text[:used])
            self._text = self._text[used:]
            if self._text or not (yield from self.more()):
                return "".join(parts)

    def copy_until(self, needles: Needles, emit: Emit) -> Reading[str]:
        """Read up to a needle and beyond it, giving `emit` what comes before; "" at the end."""
        while True:
            place, found = needles.find(self._text)
            if place:
                emit(self._text[:place])
            self._text = self._text[place + len(found) :]
            if found:
                return found
            if not (yield from self.more()):
                if rest := self.rest():
                    emit(rest)
                return ""

    def take_until(self, needles: Needles, most: int) -> Reading[tuple[str, str]]:
        """Read up to a needle and beyond it: what comes before and the needle; or `most` characters and ""."""
        while True:
            place, found = needles.find(self._text)
            if place > most:
                text, self._text = self._text[:most], self._text[most:]
                return text, ""
            if found:
                text, self._text = self._text[:place], self._text[place + len(found) :]
                return text, found
            if not (yield from self.more()):
                return self.rest(), ""

    def copy_while(self, find_end: Callable[[str], int], emit: Emit) -> Reading[bool]:
        """Read as long as `find_end` (of each stretch of text, once) says -1; whether it found the end."""
        while True:
            if not self._text and not (yield from self.more()):
                return False
            text = self.rest()
            end = find_end(text)
            if end < 0:
                emit(text)
                continue
            if end:
                emit(text[:end])
            self._text = text[end:]
            return True
