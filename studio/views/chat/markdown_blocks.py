"""Cuts Markdown into blocks while it arrives, and into prose and code when it is whole. Pure; must not import Qt.

A block ends at a blank line outside a fence (a list goes on over it), where a fence opens, and where it closes. Only
the last block still changes, and it stays small enough to be parsed again for every frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

MAX_OPEN_CHARS = 4000
"""An unfinished block of prose longer than this is cut at a line or a space."""

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_MAY_BECOME_FENCE = re.compile(r"[ \t]*(?:`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*)?$")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MAY_BECOME_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]?)?$")


class BlockKind(Enum):
    """Prose is Markdown to be rendered; code is shown as it is."""

    PROSE = "prose"
    CODE = "code"


@dataclass(slots=True, eq=False)
class Block:
    """One piece of a message. CODE has no fences in its text, and its text only ever grows at the end."""

    kind: BlockKind
    text: str = ""
    language: str = ""
    is_finished: bool = False


class BlockSplitter:
    """`feed` text as it comes; `blocks` grows, and only its last one still changes."""

    def __init__(self, *, keeps_prose_whole: bool = False) -> None:
        self.blocks: list[Block] = []
        self._keeps_prose_whole = keeps_prose_whole
        self._partial = ""
        """The line that has not ended yet."""
        self._lines: list[str] = []
        """The whole lines of the open block."""
        self._fence = ""
        self._fence_indent = ""

    def feed(self, delta: str) -> None:
        """Add text. Changes `blocks` from its last element on."""
        *lines, self._partial = (self._partial + delta.replace("\r", "")).split("\n")
        for line in lines:
            self._take_line(line)
        self._show_partial()
        self._cut_long_prose()

    def finish(self) -> None:
        """Nothing more comes: take the last line as it is and close the open block."""
        if self._partial:
            self._take_line(self._partial)
            self._partial = ""
        self._close()

    def _take_line(self, line: str) -> None:
        if self._fence:
            self._take_code_line(line)
        elif fence := _FENCE.match(line):
            self._close()
            self._fence_indent, self._fence = fence[1], fence[2]
            self.blocks.append(Block(BlockKind.CODE, language=fence[3]))
        elif line.strip():
            self._open_prose(line)
            self._lines.append(line)
            self._show()
        elif self._keeps_prose_whole or self._is_list():
            self._lines += [""] if self._lines else []
        else:
            self._close()

    def _take_code_line(self, line: str) -> None:
        mark = line.strip()
        if mark.startswith(self._fence) and not mark.strip(self._fence[0]):
            self._close()
            return
        self._lines.append(line.removeprefix(self._fence_indent))
        self._show()

    def _show_partial(self) -> None:
        if self._fence:
            if not _MAY_BECOME_FENCE.match(self._partial):
                self._show(self._partial.removeprefix(self._fence_indent))
            return
        undecided = bool(_MAY_BECOME_FENCE.match(self._partial))
        if self._lines and not self._lines[-1]:
            undecided = undecided or bool(_MAY_BECOME_ITEM.match(self._partial))
        if not undecided:
            self._open_prose(self._partial)
            self._show(self._partial)

    def _open_prose(self, line: str) -> None:
        """Have an open prose block that `line`, which is not blank, belongs to."""
        is_after_blank = bool(self._lines) and not self._lines[-1]
        goes_on = line[0] in " \t" or bool(_LIST_ITEM.match(line))
        if is_after_blank and not goes_on and not self._keeps_prose_whole:
            self._close()
        if not self.blocks or self.blocks[-1].is_finished:
            self.blocks.append(Block(BlockKind.PROSE))

    def _is_list(self) -> bool:
        return bool(self._lines) and bool(_LIST_ITEM.match(self._lines[0]))

    def _show(self, *partial: str) -> None:
        self.blocks[-1].text = "\n".join([*self._lines, *partial])

    def _close(self) -> None:
        if self.blocks and not self.blocks[-1].is_finished:
            block = self.blocks[-1]
            block.text = "\n".join(self._lines)
            if block.kind is BlockKind.PROSE:
                block.text = block.text.rstrip("\n")
            block.is_finished = True
        self._lines.clear()
        self._fence = self._fence_indent = ""

    def _cut_long_prose(self) -> None:
        if self._fence or self._keeps_prose_whole or not self.blocks:
            return
        if self.blocks[-1].is_finished or len(self.blocks[-1].text) <= MAX_OPEN_CHARS:
            return
        if not self._lines:
            head, space, rest = self._partial.rpartition(" ")
            self._lines.append(head if space else self._partial)
            self._partial = rest if space else ""
        self._close()
        self._show_partial()


def whole_parts(text: str) -> list[Block]:
    """A finished message as runs of prose and pieces of code, in order."""
    splitter = BlockSplitter(keeps_prose_whole=True)
    splitter.feed(text)
    splitter.finish()
    return splitter.blocks
