"""Colours code by Pygments' tokens, for every language that Pygments knows.

GUI thread. While code arrives each line is coloured by itself, which is cheap and nearly right; once it is whole it is
read as a whole, in slices. Colours are looked up when they are set, so the theme may change. Must not import services.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]
from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument

from studio.views.theme import Theme

MAX_CHARS = 200_000
MAX_LINE_CHARS = 2000
"""Longer code, or code with a longer line, stays in one colour: it is data, and lexers can be slow on it."""
_LINES_A_STEP = 4

Span = tuple[int, int, str]
"""(start in the line, length, name of the colour)."""


class CodeColor(Enum):
    """The colours of code; the theme has one of each for light and for dark."""

    KEYWORD = "keyword"
    NAME = "name"
    BUILTIN = "builtin"
    STRING = "string"
    NUMBER = "number"
    COMMENT = "comment"
    OPERATOR = "operator"
    ADDED = "added"
    REMOVED = "removed"


_COLOR_OF = {
    Token.Keyword: CodeColor.KEYWORD,
    Token.Keyword.Constant: CodeColor.NUMBER,
    Token.Keyword.Type: CodeColor.BUILTIN,
    Token.Name.Function: CodeColor.NAME,
    Token.Name.Class: CodeColor.NAME,
    Token.Name.Tag: CodeColor.KEYWORD,
    Token.Name.Attribute: CodeColor.NAME,
    Token.Name.Decorator: CodeColor.BUILTIN,
    Token.Name.Builtin: CodeColor.BUILTIN,
    Token.Name.Exception: CodeColor.BUILTIN,
    Token.Name.Constant: CodeColor.NUMBER,
    Token.Name.Variable: CodeColor.NAME,
    Token.Name.Namespace: CodeColor.NAME,
    Token.Literal.String: CodeColor.STRING,
    Token.Literal.Number: CodeColor.NUMBER,
    Token.Literal.Date: CodeColor.NUMBER,
    Token.Comment: CodeColor.COMMENT,
    Token.Operator: CodeColor.OPERATOR,
    Token.Operator.Word: CodeColor.KEYWORD,
    Token.Generic.Heading: CodeColor.NAME,
    Token.Generic.Subheading: CodeColor.NAME,
    Token.Generic.Inserted: CodeColor.ADDED,
    Token.Generic.Deleted: CodeColor.REMOVED,
    Token.Generic.Prompt: CodeColor.COMMENT,
}


class Highlighter(QSyntaxHighlighter):
    """Colours one document of code. `settle` is called once the code is whole."""

    def __init__(self, document: QTextDocument, language: str, theme: Theme) -> None:
        super().__init__(document)
        self._lexer = lexer_for(language)
        self._theme = theme
        self._spans: list[list[Span]] | None = None
        """Of each line, as the whole code has them; None while it still grows."""

    @property
    def can_color(self) -> bool:
        """Whether the language is known."""
        return self._lexer is not None

    def highlightBlock(self, line: str) -> None:
        if self._lexer is None or not line:
            return
        number = self.currentBlock().blockNumber()
        if self._spans is not None:
            spans = self._spans[number] if number < len(self._spans) else []
        elif len(line) <= MAX_LINE_CHARS:
            spans = next(iter(_lines_of(self._lexer, line)), [])
        else:
            spans = []
        for start, length, name in spans:
            form = QTextCharFormat()
            form.setForeground(self._theme.code_colors[name])
            if name == CodeColor.COMMENT.value:
                form.setFontItalic(True)
            self.setFormat(start, length, form)

    def settle(self) -> Iterator[None]:
        """Read the code as a whole and colour it so; to be done in slices."""
        code = self.document().toPlainText()
        if self._lexer is None or not _is_readable(code):
            return
        spans: list[list[Span]] = []
        for line in _lines_of(self._lexer, code):
            spans.append(line)
            if len(spans) % _LINES_A_STEP == 0:
                yield
        self._spans = spans
        yield from self.color_again()

    def color_again(self) -> Iterator[None]:
        """Set the colours of every line, as the theme has them now; to be done in slices."""
        block = self.document().begin()
        while block.isValid():
            self.rehighlightBlock(block)
            block = block.next()
            if block.blockNumber() % _LINES_A_STEP == 0:
                yield


def _is_readable(code: str) -> bool:
    return len(code) <= MAX_CHARS and max(map(len, code.split("\n"))) <= MAX_LINE_CHARS


@lru_cache(maxsize=64)
def lexer_for(language: str) -> Lexer | None:
    """Pygments' lexer for a name that follows a fence; None where it has none of that name."""
    name = language.strip().lower().strip("{}.").partition(",")[0].partition(":")[0]
    if not name or name in ("text", "plain", "plaintext", "txt", "output"):
        return None
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _lines_of(lexer: Lexer, code: str) -> Iterator[list[Span]]:
    """The coloured spans of one line after another."""
    starts = [0]
    for text in code.split("\n")[:-1]:
        starts.append(starts[-1] + len(text) + 1)
    lines: list[list[Span]] = [[] for _ in starts]
    done = 0
    whole = code + "\n"  # many rules end with the line's end
    for place, kind, text in lexer.get_tokens_unprocessed(whole):
        line = bisect_right(starts, place) - 1
        while done < line:
            yield lines[done]
            done += 1
        color = color_of(kind)
        if color is None:
            continue
        start = place - starts[line]
        for part in str(text).split("\n"):
            if part and line < len(lines):
                lines[line].append((start, len(part), color.value))
            line, start = line + 1, 0
    yield from lines[done:]


@lru_cache(maxsize=512)
def color_of(kind: _TokenType) -> CodeColor | None:
    """The colour of a token, or of what it is a kind of; None for the colour of text."""
    while kind is not Token:
        if (color := _COLOR_OF.get(kind)) is not None:
            return color
        kind = kind.parent
    return None
