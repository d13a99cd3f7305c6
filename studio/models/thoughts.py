"""Tells a model's thinking from its answer in a reply that still grows. Pure; no Qt, no thread.

Thinking stands between tags such as <think> and </think>. Some templates open the tag in the prompt, so that a reply
may begin inside its thinking and only ever close it: then all before the closing tag was thinking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
)
_CLOSER_OF = dict(_PAIRS)
_OPENERS = tuple(opener for opener, _ in _PAIRS)
_CLOSERS = tuple(closer for _, closer in _PAIRS)
_OPENING = re.compile(r"\s*(" + "|".join(map(re.escape, _OPENERS)) + ")")
_CLOSING = re.compile("|".join(map(re.escape, _CLOSERS)))
_LONGEST = max(map(len, _CLOSERS))


@dataclass(frozen=True, slots=True)
class Piece:
    """What came next. `start` is where it stands in the reply."""

    text: str
    is_thought: bool
    start: int


class ThoughtSplitter:
    """`feed` text as it comes; each call returns what has become certain. Thinking is looked for at the beginning."""

    def __init__(self) -> None:
        self.was_thought_all_along = False
        """A closing tag came that nothing had opened: what was given out before it was thinking too."""
        self.has_thought = False
        """There was thinking, and it has ended."""
        self._held = ""
        self._start = 0
        """Where `_held` begins in the reply."""
        self._closer = ""
        self._is_at_start = True
        self._may_close = True
        self._last = "\n"
        """The last character given out: a tag that nothing opened counts at the beginning of a line only."""

    @property
    def is_thinking(self) -> bool:
        """Whether a tag is open now."""
        return bool(self._closer)

    @property
    def position(self) -> int:
        """Where in the reply the next piece begins."""
        return self._start

    def feed(self, delta: str) -> list[Piece]:
        """Take text; what might still be a tag is held back."""
        self._held += delta
        pieces: list[Piece] = []
        if self._is_at_start and not self._open():
            return pieces
        if self._closer or self._may_close:
            self._close(pieces)
        else:
            self._give(pieces, len(self._held), is_thought=False)
        return pieces

    def finish(self) -> list[Piece]:
        """Nothing more comes: give out what was held back."""
        pieces: list[Piece] = []
        self._is_at_start = False
        self._give(pieces, len(self._held), is_thought=bool(self._closer))
        return pieces

    def _open(self) -> bool:
        """Whether it is known by now if the reply begins with a tag."""
        if found := _OPENING.match(self._held):
            self._closer = _CLOSER_OF[found[1]]
            self._skip(found.end())
        elif any(opener.startswith(self._held.lstrip()) for opener in _OPENERS):
            return False
        self._is_at_start = False
        return True

    def _close(self, pieces: list[Piece]) -> None:
        start, end = self._find_closer()
        if end == 0:
            self._give(pieces, len(self._held) - self._undecided(), is_thought=bool(self._closer))
            return
        self.was_thought_all_along = not self._closer
        self._give(pieces, start, is_thought=True)
        self._skip(end - start)
        self._closer, self._may_close, self.has_thought = "", False, True
        self._give(pieces, len(self._held), is_thought=False)

    def _find_closer(self) -> tuple[int, int]:
        if self._closer:
            start = self._held.find(self._closer)
            return (start, start + len(self._closer)) if start >= 0 else (0, 0)
        for found in _CLOSING.finditer(self._held):
            before = self._held[found.start() - 1] if found.start() else self._last
            if before == "\n":
                return found.span()
        return 0, 0

    def _undecided(self) -> int:
        """How many characters at the end may be the beginning of a closing tag."""
        closers = (self._closer,) if self._closer else _CLOSERS
        tail = self._held[-_LONGEST:]
        if "<" not in tail and "[" not in tail:
            return 0
        for length in range(min(_LONGEST - 1, len(self._held)), 0, -1):
            if any(closer.startswith(self._held[-length:]) for closer in closers):
                return length
        return 0

    def _give(self, pieces: list[Piece], length: int, *, is_thought: bool) -> None:
        if length:
            pieces.append(Piece(self._held[:length], is_thought, self._start))
            self._last = self._held[length - 1]
            self._skip(length)

    def _skip(self, length: int) -> None:
        self._held = self._held[length:]
        self._start += length


def without_thoughts(text: str) -> str:
    """The answer alone, as a conversation goes on with it."""
    splitter = ThoughtSplitter()
    pieces = splitter.feed(text) + splitter.finish()
    answer = [piece.text for piece in pieces if not piece.is_thought]
    if splitter.was_thought_all_along:
        answer = answer[-1:] if pieces and not pieces[-1].is_thought else []
    return "".join(answer).lstrip() if len(answer) != len(pieces) else text


def split_thoughts(text: str) -> tuple[str, str]:
    """The thinking of a whole reply, without its tags, and the answer."""
    answer = without_thoughts(text)
    if answer == text:
        return "", text
    splitter = ThoughtSplitter()
    pieces = splitter.feed(text) + splitter.finish()
    if splitter.was_thought_all_along:
        return "".join(piece.text for piece in pieces)[: -len(answer) or None].strip(), answer
    return "".join(piece.text for piece in pieces if piece.is_thought).strip(), answer
