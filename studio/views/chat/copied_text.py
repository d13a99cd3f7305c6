"""What goes to the clipboard for a part of a row: the words as they are seen, or the Markdown they come from.

GUI thread; must not import services.
"""

from __future__ import annotations

from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QTextEdit

from studio.views.chat.formula_object import LATEX
from studio.views.chat.inline_formulas import FIRST_MARK, cut_formulas
from studio.views.chat.markdown_blocks import BlockKind
from studio.views.chat.row_views import RowView
from studio.views.chat.sections import Row, RowKind

_OBJECT = "\ufffc"


def plain_between(row: Row[RowView], start: int, end: int) -> str:
    """The words of a row from one place to another."""
    edit = row.view.text_edit if row.view is not None else None
    if edit is not None:
        return _seen_text(edit, start, end)
    if row.kind is RowKind.PROMPT or row.block.kind is not BlockKind.PROSE:
        return row.block.text[start:end]
    text, formulas = cut_formulas(row.block.text)
    document = QTextDocument()
    document.setMarkdown(text)
    shown = document.toPlainText()[start:end]
    for number, latex in enumerate(formulas):
        shown = shown.replace(chr(FIRST_MARK + number), f"${latex}$")
    return shown


def markdown_between(row: Row[RowView], start: int, end: int) -> str:
    """The Markdown of a row: its source where all of it is meant, else the words."""
    if row.kind is RowKind.PROMPT:
        return plain_between(row, start, end)
    edit = row.view.text_edit if row.view is not None else None
    length = edit.document().characterCount() - 1 if edit is not None else len(row.block.text)
    if start <= 0 and end >= length:
        return row.block.markdown
    return plain_between(row, start, end)


def _seen_text(edit: QTextEdit, start: int, end: int) -> str:
    """With the source of formulas, which are one character each on screen."""
    document = edit.document()
    last = document.characterCount() - 1
    cursor = QTextCursor(document)
    cursor.setPosition(min(start, last))
    cursor.setPosition(min(end, last), QTextCursor.MoveMode.KeepAnchor)
    if _OBJECT not in cursor.selectedText():
        return cursor.selection().toPlainText()
    parts = []
    low, high = cursor.selectionStart(), cursor.selectionEnd()
    for place in range(low, high):
        char = document.characterAt(place)
        if char == _OBJECT:
            cursor.setPosition(place + 1)
            char = f"${cursor.charFormat().property(LATEX)}$"
        parts.append("\n" if char in "\u2028\u2029" else char)
    return "".join(parts)
