"""A line with too little room ends in an ellipsis, and that is where the reading ends, whatever way it goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from studio.views.elided_label import ElidedLabel, ElidedLines

VIEWS = Path(__file__).resolve().parents[3] / "studio" / "views"
ARABIC = "مرحبا بالعالم " * 6
DOTS_PX = 4
"""An ellipsis is no higher."""


def ink_rows(image: QImage, left: int, right: int) -> list[int]:
    """The rows of pixels that are not the ground, in these columns."""
    ground = image.pixel(0, 0)
    columns = range(left, right)
    return [y for y in range(image.height()) if any(image.pixel(x, y) != ground for x in columns)]


@pytest.mark.parametrize("kind", [ElidedLabel, ElidedLines])
@pytest.mark.parametrize(("text", "is_left"), [(ARABIC, True), ("Nothing but words " * 6, False)])
def test_an_ellipsis_stands_where_the_reading_ends(
    page: QWidget, kind: type, text: str, is_left: bool
) -> None:
    label = ElidedLabel(page) if kind is ElidedLabel else ElidedLines(1, page)
    label.set_text(text)
    label.resize(120, 24)
    label.show()
    image = label.grab().toImage()
    scale = image.devicePixelRatio()
    inked = [x for x in range(image.width()) if ink_rows(image, x, x + 1)]
    edges = (inked[0], inked[0] + round(4 * scale)), (inked[-1] - round(4 * scale), inked[-1] + 1)
    low, high = edges if is_left else edges[::-1]
    assert len(ink_rows(image, *low)) <= DOTS_PX * scale
    assert len(ink_rows(image, *high)) > DOTS_PX * scale


def test_whatever_paints_names_lets_them_have_their_own_direction() -> None:
    for path in VIEWS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        paints = "QPainter(self)" in text or "def paint(" in text
        if "elidedText(" in text and "drawText(" in text and paints:
            assert "LayoutDirectionAuto" in text, path.name
