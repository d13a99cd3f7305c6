"""Fields of several lines: whole lines of them are seen, also when the size of the text changes."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QWidget

from fakes.faults import halved
from studio.models.window_settings import Theme as ThemeChoice
from studio.views.inputs import LinesField
from studio.views.theme import Theme


@pytest.mark.parametrize("num_lines", [2, 3, 6])
def test_a_field_of_lines_shows_so_many_at_every_size_of_text(
    theme: Theme, page: QWidget, num_lines: int
) -> None:
    field = LinesField(num_lines, page)
    field.show()
    for text_size in (10, 14, 28):
        theme.apply(ThemeChoice.LIGHT, text_size)
        room_px = field.viewport().height() - 2 * field.document().documentMargin()
        assert room_px / QFontMetricsF(field.font()).lineSpacing() == pytest.approx(
            num_lines, abs=0.2
        )
        assert halved(page) == []
