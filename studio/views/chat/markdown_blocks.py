"""Cuts Markdown into blocks while it arrives: prose, code and formulas. Pure; must not import Qt.

A block ends at a blank line outside a fence (a list goes on over it), where a fence or a formula opens, and where it
closes. A block that has ended never changes again; the last one stays small enough to be rendered again for a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

MAX_OPEN_CHARS = 4000
"""An unfinished block of prose longer than this is cut at a line or a space."""
MAX_LIST_CHARS = 1200
"""A list longer than this is cut before its next item, and goes on in the next block."""
_MAX_FORMULA_LINES = 40

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_MAY_BECOME_FENCE = re.compile(r"[ \t]*(?:`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*)?$")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MAY_BECOME_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]?)?$")
_FORMULA = re.compile(
    r"[ \t]*(\$\$|\\\[|\\begin\{(?:equation|align|gather|multline|eqnarray)\*?\})"
)
_MAY_BECOME_FORMULA = re.compile(r"[ \t]*(?:\$|\$\$.*|\\|\\\[.*|\\b\w*\{?.*)$")
_AFTER_FORMULA = re.compile(r"[ \t]*[.,;:]?[ \t]*$")


class BlockKind(Enum):
    """Prose is Markdown to be rendered; code and formulas are shown as they are, or drawn."""

    PROSE = "prose"
    CODE = "code"
    FORMULA = "formula"
    """LaTeX of its own line."""
    THOUGHT = "thought"
    """The head of a piece of thinking; its blocks follow."""


@dataclass(slots=True, eq=False)
class Block:
    """One piece of a message. CODE has no fences in its text, and its text only ever grows at the end."""

    kind: BlockKind
    text: str = ""
    language: str = ""
    is_finished: bool = False
    is_thought: bool = False
    goes_on: bool = False
    """A cut in a list or a paragraph, not an end, lies before it."""
    start: int = 0
    """Where it begins in the message."""

    @property
    def markdown(self) -> str:
        """As the model wrote it, or as good."""
        match self.kind:
            case BlockKind.CODE:
                fence = "````" if "```" in self.text else "```"
                return f"{fence}{self.language}\n{self.text}\n{fence}"
            case BlockKind.FORMULA:
                is_bare = self.text.startswith("\\begin")
                return self.text if is_bare else f"$$\n{self.text}\n$$"
            case _:
                return self.text


class BlockSplitter:
    """`feed` text as it comes; `blocks` grows, and only its last one still changes."""

    def __init__(self, *, is_thought: bool = False, start: int = 0) -> None:
        self.blocks: list[Block] = []
        self._is_thought = is_thought
        self._partial = ""
        """The line that has not ended yet."""
        self._partial_start = start
        self._lines: list[str] = []
        """The whole lines of the open block."""
        self._fence = ""
        self._fence_indent = ""
        self._closer = ""
        """What ends the open formula; empty while none is open."""
        self._opener = ""
        self._was_cut = False

    def feed(self, delta: str) -> None:
        """Add text. Changes `blocks` from its last element on."""
        *lines, partial = (self._partial + delta).split("\n")
        for line in lines:
            next_start = self._partial_start + len(line) + 1
            self._take_line(line.rstrip("\r"))
            self._partial_start = next_start
        self._partial = partial
        self._show_partial()

    def finish(self) -> None:
        """Nothing more comes: take the last line as it is and close the open block."""
        if self._partial:
            self._take_line(self._partial)
            self._partial = ""
        if self._closer:
            self._give_formula_up()
        self._close()

    def _take_line(self, line: str) -> None:
        if self._fence:
            self._take_code_line(line)
        elif self._closer:
            self._take_formula_line(line)
        elif fence := _FENCE.match(line):
            self._close()
            self._fence_indent, self._fence = fence[1], fence[2]
            self._begin(BlockKind.CODE, language=fence[3])
        elif (formula := _FORMULA.match(line)) and self._open_formula(line, formula[1]):
            return
        elif line.strip():
            line = self._cut_before(line)
            self._open_prose(line)
            self._lines.append(line)
            self._show()
        elif self._is_list():
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

    def _open_formula(self, line: str, opener: str) -> bool:
        """Begin a formula of its own lines; False if the line only has one among other words."""
        rest = line.strip().removeprefix(opener)
        closer = {"$$": "$$", "\\[": "\\]"}.get(opener, opener.replace("begin", "end"))
        inner, found, after = rest.partition(closer)
        if found and not _AFTER_FORMULA.match(after):
            return False
        self._close()
        self._begin(BlockKind.FORMULA)
        self._opener, self._closer = opener, closer
        if found:
            self._lines = [inner]
            self._end_formula()
        elif rest:
            self._lines.append(rest)
            self._show()
        return True

    def _take_formula_line(self, line: str) -> None:
        inner, found, _after = line.partition(self._closer)
        if not found and (not line.strip() or len(self._lines) >= _MAX_FORMULA_LINES):
            self._give_formula_up()
            self._close()
            return
        if inner.strip():
            self._lines.append(inner.strip())
        if found:
            self._end_formula()
        else:
            self._show()

    def _end_formula(self) -> None:
        if self._opener.startswith("\\begin"):
            self._lines = [self._opener, *self._lines, self._closer]
        self._close()

    def _give_formula_up(self) -> None:
        """What looked like a formula has no end: it is prose."""
        self.blocks[-1].kind = BlockKind.PROSE
        self._lines.insert(0, self._opener)
        self._opener = self._closer = ""

    def _show_partial(self) -> None:
        line = self._partial.rstrip("\r")
        if self._fence:
            if not _MAY_BECOME_FENCE.match(line):
                self._show(line.removeprefix(self._fence_indent))
            return
        if self._closer or _MAY_BECOME_FENCE.match(line) or _MAY_BECOME_FORMULA.match(line):
            return
        is_list = self._is_list() or (self._lines and not self._lines[-1])
        if is_list and _MAY_BECOME_ITEM.match(line):
            return
        rest = self._cut_before(line)
        self._partial = self._partial[len(line) - len(rest) :]
        self._open_prose(rest)
        self._show(rest)

    def _open_prose(self, line: str) -> None:
        """Have an open prose block that `line`, which is not blank, belongs to."""
        is_item = bool(_LIST_ITEM.match(line))
        is_after_blank = bool(self._lines) and not self._lines[-1]
        if is_after_blank and not (line[0] in " \t" or is_item):
            self._close()
        elif is_item and line[0] != " " and self._is_list() and self._size() > MAX_LIST_CHARS:
            self._close()
            self._was_cut = True
        if not self.blocks or self.blocks[-1].is_finished:
            self._begin(BlockKind.PROSE)

    def _begin(self, kind: BlockKind, language: str = "") -> None:
        self.blocks.append(
            Block(
                kind,
                language=language,
                is_thought=self._is_thought,
                goes_on=self._was_cut,
                start=self._partial_start,
            )
        )
        self._was_cut = False

    def _is_list(self) -> bool:
        return bool(self._lines) and bool(_LIST_ITEM.match(self._lines[0]))

    def _size(self) -> int:
        """Of the whole lines of the open block: what has arrived of the next one must not matter."""
        return sum(map(len, self._lines)) + len(self._lines)

    def _show(self, *partial: str) -> None:
        self.blocks[-1].text = "\n".join([*self._lines, *partial])

    def _close(self) -> None:
        if self.blocks and not self.blocks[-1].is_finished:
            block = self.blocks[-1]
            block.text = "\n".join(self._lines)
            if block.kind is not BlockKind.CODE:
                block.text = block.text.rstrip("\n")
            block.is_finished = True
        self._lines.clear()
        self._fence = self._fence_indent = self._opener = self._closer = ""
        self._was_cut = False

    def _cut_before(self, line: str) -> str:
        """End the open block where this line would make it too long; what is left of the line itself."""
        is_table = bool(self._lines) and self._lines[0].lstrip().startswith("|")
        if self._lines and self._size() + len(line) > MAX_OPEN_CHARS * (4 if is_table else 1):
            self._close()
            self._was_cut = True
        while len(line) > MAX_OPEN_CHARS:
            cut = line.rfind(" ", 1, MAX_OPEN_CHARS) + 1 or MAX_OPEN_CHARS
            self._open_prose(line)
            self._lines.append(line[:cut].rstrip(" "))
            self._close()
            self._was_cut = True
            self._partial_start += cut
            line = line[cut:]
        return line
