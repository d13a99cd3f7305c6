"""Adding words at the end shows what rendering all of it would show."""

from __future__ import annotations

import random

import pytest
from PySide6.QtWidgets import QWidget

from studio.views.chat.kit import Kit
from studio.views.chat.plain_growth import plain_growth
from studio.views.chat.prose_view import ProseView

PIECES = [
    "word", " ", "two words", ".", ",", "**bold**", "**", "*", "_", "`code`", "`", "\n", "\n- ",
    "\n1. ", "  ", "~~", "[a](http://b.c)", "[", "](", "http://x.y", "www.x.y", "a@b.c", "&amp;",
    "&", "amp;", "<b>", "$x$", "$", "# ", "> ", "\n> ", "\n\n", "|", "---", "===", "!", "\\", "(", ")",
    "1", "1.", "-", "+", "שלום", "é", ":", "//",
]  # fmt: skip


def shown(view: ProseView) -> list[tuple[object, ...]]:
    """Every character with its formats."""
    document = view.document()
    found: list[tuple[object, ...]] = []
    block = document.begin()
    while block.isValid():
        form = block.blockFormat()
        items = block.textList()
        level = (form.headingLevel(), form.leftMargin(), items.itemText(block) if items else "")
        place = block.begin()
        while not place.atEnd():
            piece = place.fragment()
            looks = piece.charFormat()
            found += [
                (char, looks.fontWeight(), looks.fontItalic(), looks.isAnchor(), level,
                 looks.fontFixedPitch(), looks.fontStrikeOut(), looks.foreground().color().name())
                for char in piece.text()
            ]  # fmt: skip
            place += 1
        found.append(("\n", level))
        block = block.next()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_growing_shows_the_same_as_rendering(kit: Kit, page: QWidget, seed: int) -> None:
    dice = random.Random(seed)
    grown, text = ProseView(kit, page), ""
    for _ in range(25):
        text += "".join(dice.choice(PIECES) for _ in range(dice.randint(1, 3)))
        if dice.random() < 0.5:
            text += dice.choice(["word", " more words", "x", " y"])
        grown.set_markdown(text)
        whole = ProseView(kit, page)
        whole.set_markdown(text)
        assert shown(grown) == shown(whole), repr(text)
        whole.deleteLater()


def test_words_in_a_paragraph_are_never_rendered_again(kit: Kit, page: QWidget) -> None:
    view, text = ProseView(kit, page), "It begins"
    view.set_markdown(text)
    before = view.num_renders
    for word in ("with some", "words, and", "then (as", "always) more;", "so it", "goes on."):
        text += f" {word}"
        view.set_markdown(text)
    assert view.num_renders == before
    assert view.toPlainText() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a", "b"),
        ("", "a"),
        ("-", "- item"),
        ("1", "1. x"),
        ("http://exa", "http://example"),
        ("a*", "a*b"),
        ("a", "a*"),
        ("| a", "| a b"),
        ("a", "a\nb"),
        ("a **b**", "a **b**c"),
    ],
)
def test_what_may_be_markdown_is_rendered(old: str, new: str) -> None:
    assert plain_growth(old, new) is None
