"""Markdown on screen: while it streams, when it is whole, and what a model must not be able to do with it."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QColor, QDesktopServices, QTextTable
from PySide6.QtWidgets import QWidget

from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.code_block import CodeBlock
from studio.views.chat.markdown_view import MarkdownView
from studio.views.chat.prose_view import ProseView, open_link
from studio.views.theme import Theme

SAMPLE = """# Title

Some **bold** text with `code`.

- one
- two

| a | b |
|---|---|
| 1 | 2 |

> quoted

```python
x = 1

y = 2
```

Last words."""


@pytest.fixture
def view(theme: Theme, page: QWidget) -> MarkdownView:
    made = MarkdownView(theme, page)
    made.resize(600, 400)
    made.show()
    return made


def texts(view: MarkdownView) -> list[str]:
    return [
        f"code:{piece.text()}" if isinstance(piece, CodeBlock) else piece.toPlainText()
        for piece in view.pieces
    ]


def stream(view: MarkdownView, text: str, cuts: list[int]) -> None:
    for cut in [*cuts, len(text)]:
        view.stream(text[:cut])


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


def test_a_streamed_text_is_a_column_of_blocks(view: MarkdownView) -> None:
    stream(view, SAMPLE, list(range(0, len(SAMPLE), 3)))
    assert texts(view) == [
        "Title",
        "Some bold text with code.",
        "one\ntwo",
        "\na\nb\n1\n2\n",
        "quoted",
        "code:x = 1\n\ny = 2",
        "Last words.",
    ]


def test_the_end_makes_prose_parts_and_code_parts(view: MarkdownView) -> None:
    stream(view, SAMPLE, [10, 50])
    view.finish(SAMPLE)
    assert [type(piece) for piece in view.pieces] == [ProseView, CodeBlock, ProseView]
    assert texts(view)[1:] == ["code:x = 1\n\ny = 2", "Last words."]


@pytest.mark.parametrize("seed", range(5))
def test_a_fence_split_over_deltas_is_one_code_block(view: MarkdownView, seed: int) -> None:
    text = "Look:\n```py\nif a:\n    b()\n```\nDone."
    dice = random.Random(seed)
    stream(view, text, sorted(dice.sample(range(1, len(text)), 12)))
    assert texts(view) == ["Look:", "code:if a:\n    b()", "Done."]


def test_only_the_unfinished_block_is_rendered_again(view: MarkdownView) -> None:
    view.stream("First.\n\nSecond")
    first, second = view.pieces
    kept = first.document()
    for text in ("First.\n\nSecond and", "First.\n\nSecond and third.\n\nFourth"):
        view.stream(text)
        assert view.pieces[0] is first
        assert first.document() is kept
    assert second.toPlainText() == "Second and third."


def test_a_table_is_a_table(view: MarkdownView) -> None:
    view.finish("> before\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nafter")
    frames = view.pieces[0].document().rootFrame().childFrames()
    (table,) = [frame for frame in frames if isinstance(frame, QTextTable)]
    assert (table.rows(), table.columns()) == (2, 2)
    assert [table.cellAt(0, c).firstCursorPosition().block().text() for c in (0, 1)] == ["a", "b"]


def test_html_is_shown_as_text(view: MarkdownView) -> None:
    text = "A <b>tag</b>, <script>alert(1)</script> and <img src=x> stay text."
    view.finish(text)
    assert texts(view) == [text]


@pytest.mark.parametrize("is_url", [False, True])
@pytest.mark.parametrize("markdown", ["![a cat]({path})", "![a cat][1]\n\n[1]: {path}"])
def test_an_image_is_never_loaded(
    view: MarkdownView, qtbot: Any, tmp_path: Path, markdown: str, *, is_url: bool
) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(red_png())
    path = picture.as_uri() if is_url else str(picture)
    text = markdown.format(path=path)
    for way in (view.stream, view.finish):
        way(text)
        assert "a cat" in texts(view)[0]
        qtbot.waitExposed(view.window())
        image = view.grab().toImage()
        red = QColor("#ff0000").rgb()
        assert all(
            image.pixel(x, y) != red
            for x in range(0, image.width(), 8)
            for y in range(0, image.height(), 4)
        )
    assert "[image: a cat]" in texts(view)[0]


def test_links_open_only_with_harmless_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def note(url: QUrl) -> bool:
        opened.append(url.toString())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", note)
    for good in ("https://example.org/a", "http://example.org", "mailto:a@example.org"):
        assert open_link(QUrl(good))
    for bad in (
        "file:///etc/passwd",
        "javascript:alert(1)",
        "smb://host/x",
        "relative",
        "",
        "vscode://x",
    ):
        assert not open_link(QUrl(bad))
    assert opened == ["https://example.org/a", "http://example.org", "mailto:a@example.org"]


def test_a_link_is_reached_by_keyboard_and_plain_prose_is_not_a_stop(view: MarkdownView) -> None:
    view.finish("See [this](https://example.org).\n```\nx\n```\nNothing here.")
    policies = [view.pieces[0].focusPolicy().name, view.pieces[2].focusPolicy().name]
    assert policies == ["StrongFocus", "ClickFocus"]


def test_streaming_and_final_rendering_are_of_the_same_height(view: MarkdownView) -> None:
    stream(view, SAMPLE, [])
    streamed = view.heightForWidth(600)
    view.finish(SAMPLE)
    assert abs(view.heightForWidth(600) - streamed) <= 8


def test_a_theme_change_reaches_the_text(view: MarkdownView, theme: Theme) -> None:
    view.finish("A [link](https://example.org).")
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        theme.apply(choice, 14)
        block = view.pieces[0].document().begin()
        colors = []
        place = block.begin()
        while not place.atEnd():
            form = place.fragment().charFormat()
            colors += [form.foreground().color().name()] if form.isAnchor() else []
            place += 1
        assert colors == [theme.colors.accent.name()]


def test_a_reply_that_never_breaks_the_line_stays_cheap(view: MarkdownView) -> None:
    text = "word " * 8000
    for end in range(0, len(text), 1000):
        view.stream(text[:end])
    assert max(piece.document().characterCount() for piece in view.pieces) < 6000
    view.finish(text)
    assert len(view.pieces) == 1
