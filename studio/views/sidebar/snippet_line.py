"""Paints the piece of a message that a search has found: one line, with what was looked for in bold. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter

from studio.models.search_hit import Snippet
from studio.views.theme import Theme

_BEFORE_CHARS = 18
"""Of the text before the first hit: it has to be in sight in a narrow side bar."""


def paint_snippet(painter: QPainter, room: QRect, snippet: Snippet, theme: Theme) -> None:
    """Draw as much as fits, the first hit in sight."""
    plain, bold = theme.font(theme.small_px), theme.font(theme.small_px, is_bold=True)
    left = room.left()
    for text, is_hit in runs_of(snippet):
        font = bold if is_hit else plain
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(theme.colors.accent if is_hit else theme.colors.secondary)
        width = room.right() - left + 1
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(left, room.top(), width, metrics.height()), 0, shown)
        left += metrics.horizontalAdvance(text)
        if left > room.right():
            return


def runs_of(snippet: Snippet) -> list[tuple[str, bool]]:
    """The pieces of a snippet and whether each was looked for, cut so that the first hit is near the beginning."""
    text, marks = snippet.text, snippet.marks
    start = 0
    if marks and marks[0][0] > _BEFORE_CHARS:
        start = text.find(" ", marks[0][0] - _BEFORE_CHARS, marks[0][0]) + 1
        start = start or marks[0][0]
    runs = [("…", False)] if start else []
    for begin, end in marks:
        runs += [(text[start:begin], False), (text[begin:end], True)]
        start = end
    runs.append((text[start:], False))
    return [(piece, is_hit) for piece, is_hit in runs if piece]
