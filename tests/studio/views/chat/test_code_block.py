"""Code on screen: grows in place, copies whole, scrolls sideways only."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QPushButton, QTextEdit, QWidget

from studio.views.chat.code_block import CodeBlock
from studio.views.theme import Theme


def test_text_grows_without_losing_the_readers_place(theme: Theme, page: QWidget) -> None:
    block = CodeBlock("py", theme, page)
    block.resize(300, 200)
    block.show()
    lines = block.findChild(QTextEdit)
    block.set_text("x = " + "1 + " * 200)
    assert lines.horizontalScrollBar().value() == 0
    lines.horizontalScrollBar().setValue(40)
    block.set_text("x = " + "1 + " * 200 + "\ny = 2")
    assert lines.horizontalScrollBar().value() == 40
    assert block.text().endswith("\ny = 2")


def test_a_selection_is_kept_while_more_code_comes(theme: Theme, page: QWidget) -> None:
    block = CodeBlock("", theme, page)
    block.set_text("select me\n")
    lines = block.findChild(QTextEdit)
    cursor = lines.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(6, QTextCursor.MoveMode.KeepAnchor)
    lines.setTextCursor(cursor)
    block.set_text("select me\nmore")
    assert lines.textCursor().selectedText() == "select"


def test_another_text_replaces_the_old_one(theme: Theme, page: QWidget) -> None:
    block = CodeBlock("", theme, page)
    block.set_text("old")
    block.set_text("new\nlines")
    assert block.text() == "new\nlines"


def test_the_height_follows_the_lines(theme: Theme, page: QWidget) -> None:
    block = CodeBlock("", theme, page)
    block.show()
    lines = block.findChild(QTextEdit)
    block.set_text("a")
    one = lines.height()
    block.set_text("a\nb\nc")
    block.adjustSize()
    assert lines.height() - one == 2 * round(theme.ui_px * 1.4)
    assert lines.verticalScrollBar().maximum() == 0


def test_copy_takes_the_code_and_says_so(theme: Theme, page: QWidget, qtbot: Any) -> None:
    block = CodeBlock("py", theme, page)
    block.set_text("x = 1\n\ny = 2")
    button = block.findChild(QPushButton)
    button.click()
    assert QGuiApplication.clipboard().text() == "x = 1\n\ny = 2"
    assert button.text() == "Copied"
    qtbot.waitUntil(lambda: button.text() == "Copy")
