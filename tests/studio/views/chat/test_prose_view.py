"""Markdown on screen, and what a model must not be able to do with it."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QGuiApplication,
    QImage,
    QPainter,
    QTextCursor,
    QTextTable,
)
from PySide6.QtWidgets import QTextEdit, QWidget

from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.formula_object import FORMULA
from studio.views.chat.kit import Kit
from studio.views.chat.link_menu import offer_link, open_link
from studio.views.chat.prose_view import ProseView
from studio.views.theme import Theme


@pytest.fixture
def view(kit: Kit, page: QWidget) -> ProseView:
    made = ProseView(kit, page)
    made.resize(600, 400)
    made.show()
    return made


def red_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + b"\xff\0\0" * 64 for _ in range(64))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_a_table_is_a_table(view: ProseView) -> None:
    view.set_markdown("> before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")
    frames = view.document().rootFrame().childFrames()
    (table,) = [frame for frame in frames if isinstance(frame, QTextTable)]
    assert (table.rows(), table.columns()) == (2, 2)
    assert [table.cellAt(0, c).firstCursorPosition().block().text() for c in (0, 1)] == ["a", "b"]


@pytest.mark.parametrize("first", [1, 9, 98, 998, 123456])
def test_the_numbers_of_a_list_have_room(view: ProseView, first: int) -> None:
    view.set_markdown(f"{first}. one\n{first + 1}. two\n")
    margin_px = 60
    page = QImage(400, 200, QImage.Format.Format_RGB32)
    page.fill(Qt.GlobalColor.white)
    painter = QPainter(page)
    painter.translate(margin_px, 0)
    view.document().drawContents(painter)
    painter.end()
    white = QColor("white").rgb()
    inked = [x for x in range(400) for y in range(200) if page.pixel(x, y) != white]
    assert margin_px <= min(inked) < margin_px + 24, "not cut off, and no further in than needed"


def test_html_is_shown_as_text(view: ProseView) -> None:
    text = "A <b>tag</b>, <script>alert(1)</script> and <img src=x> stay text."
    view.set_markdown(text)
    assert view.toPlainText() == text


@pytest.mark.parametrize("is_url", [False, True])
@pytest.mark.parametrize("markdown", ["![a cat]({path})", "![a cat][1]\n\n[1]: {path}"])
def test_an_image_is_never_loaded(
    view: ProseView, qtbot: Any, tmp_path: Path, markdown: str, *, is_url: bool
) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(red_png())
    path = picture.as_uri() if is_url else str(picture)
    view.set_markdown(markdown.format(path=path))
    assert view.toPlainText() == "[image: a cat]"
    qtbot.waitExposed(view.window())
    image = view.grab().toImage()
    red = QColor("#ff0000").rgb()
    assert all(
        image.pixel(x, y) != red
        for x in range(0, image.width(), 8)
        for y in range(0, image.height(), 4)
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that were handed to the system."""
    found: list[str] = []

    def note(url: QUrl) -> bool:
        found.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", note)
    return found


def test_links_open_only_with_harmless_schemes(opened: list[str]) -> None:
    good = ["https://example.org/a", "http://example.org", "mailto:a@example.org"]
    assert all(open_link(QUrl(url)) for url in good)
    for bad in (
        "file:///etc/passwd",
        "javascript:alert(1)",
        "smb://host/x",
        "relative",
        "",
        "vscode://x",
    ):
        assert not open_link(QUrl(bad))
    assert opened == good


def test_a_link_says_where_it_leads_before_it_opens(view: ProseView, opened: list[str]) -> None:
    menu = offer_link(QUrl("https://example.org/a?b=1"), view)
    where, _, go, copy = menu.actions()
    assert where.text() == "https://example.org/a?b=1"
    assert opened == []
    copy.trigger()
    assert QGuiApplication.clipboard().text() == "https://example.org/a?b=1"
    go.trigger()
    assert opened == ["https://example.org/a?b=1"]


def test_a_link_that_may_not_be_opened_can_only_be_copied(view: ProseView) -> None:
    _, _, go, copy = offer_link(QUrl("file:///etc/passwd"), view).actions()
    assert not go.isEnabled()
    assert copy.isEnabled()


def test_a_link_is_reached_by_keyboard_and_plain_prose_is_not_a_stop(view: ProseView) -> None:
    view.set_markdown("See [this](https://example.org).")
    assert view.focusPolicy().name == "StrongFocus"
    for plain in ("Nothing here.", "Nor in `https://code`."):
        view.set_markdown(plain)
        assert view.focusPolicy().name == "ClickFocus"


def test_the_keyboard_stands_on_the_first_link_or_from_below_on_the_last(view: ProseView) -> None:
    view.set_markdown("See [this](https://a.example) or [that](https://b.example).")
    reasons = {"this": Qt.FocusReason.TabFocusReason, "that": Qt.FocusReason.BacktabFocusReason}
    view.activateWindow()
    for link, reason in reasons.items():
        view.clearFocus()
        view.setFocus(reason)
        assert view.textCursor().selectedText() == link


def test_a_theme_change_reaches_the_text(view: ProseView, kit: Kit) -> None:
    view.set_markdown("A [link](https://example.org).")
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        kit.theme.apply(choice, 14)
        block = view.document().begin()
        colors = []
        place = block.begin()
        while not place.atEnd():
            form = place.fragment().charFormat()
            colors += [form.foreground().color().name()] if form.isAnchor() else []
            place += 1
        assert colors == [kit.theme.colors.accent.name()]


def formulas_in(view: ProseView) -> int:
    document = view.document()
    cursor = QTextCursor(document)
    found = 0
    for place in range(1, document.characterCount()):
        cursor.setPosition(place)
        found += cursor.charFormat().objectType() == FORMULA
    return found


def test_formulas_are_drawn_once_they_are_typeset_and_bad_ones_stay_source(
    view: ProseView, kit: Kit, qtbot: Any
) -> None:
    text = r"Let $x^2$ and **$y$**, not $\frac{a$ or `$z$`."
    view.set_markdown(text)
    assert "x^2" in view.toPlainText()
    qtbot.waitUntil(lambda: not kit.formulas.is_busy)
    view.refresh()
    assert formulas_in(view) == 2
    shown = view.toPlainText()
    assert r"\frac{a" in shown
    assert "$z$" in shown
    assert view.heightForWidth(600) > 10


def select(view: ProseView, start: int, end: int) -> None:
    cursor = view.textCursor()
    cursor.setPosition(start)
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)


def test_marks_survive_another_document_and_its_end(view: ProseView, theme: Theme) -> None:
    view.set_markdown("Three *days* in Lisbon")
    mark = QTextEdit.ExtraSelection()
    mark.cursor = view.document().find("days")
    view.setExtraSelections([mark])
    del mark
    for change in (
        lambda: theme.apply(ThemeChoice.DARK, 14),
        lambda: view.set_markdown("Three *days* in **Lisbon** and"),
    ):
        change()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert [one.cursor.selectedText() for one in view.extraSelections()] == ["days"]
    view.forget()
    assert view.extraSelections() == []


@pytest.mark.parametrize("more", [" and plain words", " and **bold** ones", "\n- item"])
def test_a_selection_survives_new_tokens(view: ProseView, more: str) -> None:
    view.set_markdown("Select these words")
    for start, end in ((0, 6), (7, 18)):
        select(view, start, end)
        chosen = view.textCursor().selectedText()
        view.set_markdown("Select these words" + more)
        assert view.textCursor().selectedText() == chosen
        view.set_markdown("Select these words")


def test_right_to_left_text_stands_at_the_right(view: ProseView) -> None:
    view.set_markdown("שלום עולם\n\nHello")
    first = view.document().begin()
    assert first.textDirection().name == "RightToLeft"
    assert first.next().textDirection().name == "LeftToRight"
