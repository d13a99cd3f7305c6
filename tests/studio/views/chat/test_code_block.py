"""Code on screen: grows in place, copies whole, scrolls sideways only."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QPushButton, QTextEdit, QWidget
from shiboken6 import delete

from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.code_block import CodeBlock
from studio.views.chat.highlighter import MAX_LINE_CHARS, lexer_for
from studio.views.chat.kit import Kit
from studio.views.theme import Theme


def test_text_grows_without_losing_the_readers_place(kit: Kit, page: QWidget) -> None:
    block = CodeBlock("py", kit, page)
    block.resize(300, 200)
    block.show()
    lines = block.findChild(QTextEdit)
    block.set_text("x = " + "1 + " * 200)
    assert lines.horizontalScrollBar().value() == 0
    lines.horizontalScrollBar().setValue(40)
    block.set_text("x = " + "1 + " * 200 + "\ny = 2")
    assert lines.horizontalScrollBar().value() == 40
    assert block.text().endswith("\ny = 2")


def test_a_selection_is_kept_while_more_code_comes(kit: Kit, page: QWidget) -> None:
    block = CodeBlock("", kit, page)
    block.set_text("select me\n")
    lines = block.findChild(QTextEdit)
    cursor = lines.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(6, QTextCursor.MoveMode.KeepAnchor)
    lines.setTextCursor(cursor)
    block.set_text("select me\nmore")
    assert lines.textCursor().selectedText() == "select"


def test_another_text_replaces_the_old_one(kit: Kit, page: QWidget) -> None:
    block = CodeBlock("", kit, page)
    block.set_text("old")
    block.set_text("new\nlines")
    assert block.text() == "new\nlines"


def test_the_height_follows_the_lines(kit: Kit, page: QWidget) -> None:
    block = CodeBlock("", kit, page)
    block.show()
    lines = block.findChild(QTextEdit)
    block.set_text("a")
    one = lines.height()
    block.set_text("a\nb\nc")
    block.adjustSize()
    assert lines.height() - one == 2 * round(kit.theme.ui_px * 1.4)
    assert lines.verticalScrollBar().maximum() == 0


def test_copy_takes_the_code_and_says_so(kit: Kit, page: QWidget, qtbot: Any) -> None:
    block = CodeBlock("py", kit, page)
    block.set_text("x = 1\n\ny = 2")
    button = block.findChild(QPushButton)
    button.click()
    assert QGuiApplication.clipboard().text() == "x = 1\n\ny = 2"
    assert button.text() == "Copied"
    qtbot.waitUntil(lambda: button.text() == "Copy")


def colors(block: CodeBlock) -> list[list[tuple[str, str]]]:
    """(text, colour) of each coloured span, by line."""
    found = []
    line = block.text_edit.document().begin()
    while line.isValid():
        found.append(
            [
                (
                    line.text()[span.start : span.start + span.length],
                    span.format.foreground().color().name(),
                )
                for span in line.layout().formats()
            ]
        )
        line = line.next()
    return found


def test_lines_are_coloured_as_they_come_and_as_a_whole_at_the_end(
    kit: Kit, page: QWidget, qtbot: Any
) -> None:
    block = CodeBlock("python", kit, page)
    names = kit.theme.code_colors
    block.set_text('def f():\n    """Doc\n    string')
    assert ("def", names["keyword"].name()) in colors(block)[0]
    assert colors(block)[2] == []
    block.set_text('def f():\n    """Doc\n    string."""\n    return 1')
    block.finish()
    qtbot.waitUntil(lambda: ('    string."""', names["string"].name()) in colors(block)[2])
    kit.theme.apply(ThemeChoice.DARK, 14)
    dark = kit.theme.code_colors["string"].name()
    qtbot.waitUntil(lambda: ('    string."""', dark) in colors(block)[2])


def test_a_language_nobody_knows_stays_in_one_colour(kit: Kit, page: QWidget) -> None:
    for language in ("", "nosuchlanguage", "text"):
        block = CodeBlock(language, kit, page)
        block.set_text("def f(): pass")
        block.finish()
        assert colors(block) == [[]]


@pytest.mark.parametrize(
    "language", ["rust", "sql", "yaml", "C++", "js", "tsx", "sh", "py", "html"]
)
def test_languages_have_a_lexer(language: str) -> None:
    assert lexer_for(language) is not None


def test_a_very_long_line_is_not_read(kit: Kit, page: QWidget, qtbot: Any) -> None:
    block = CodeBlock("json", kit, page)
    block.set_text("[" + "1," * MAX_LINE_CHARS + "1]")
    block.finish()
    qtbot.wait(1)
    assert colors(block) == [[]]


def test_a_block_that_is_gone_is_coloured_no_more_though_a_theme_came_last(
    kit: Kit, page: QWidget, theme: Theme, qtbot: Any
) -> None:
    block = CodeBlock("py", kit, page)
    block.set_text("x = 1")
    block.finish()
    block.let_go()
    theme.apply(ThemeChoice.DARK, 14)
    assert kit.slices._works
    delete(block)
    qtbot.waitUntil(lambda: not kit.slices._works)


def test_a_block_whose_colours_are_gone_already_is_coloured_no_more(
    kit: Kit, page: QWidget, qtbot: Any
) -> None:
    block = CodeBlock("py", kit, page)
    block.set_text("x = 1\n" * 5000)
    block.finish()
    delete(block._highlighter)
    qtbot.waitUntil(lambda: not kit.slices._works)
