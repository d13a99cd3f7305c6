"""Fields of several lines: whole lines of them are seen, also when the size of the text changes."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from fakes.faults import halved
from studio.models.window_settings import Theme as ThemeChoice
from studio.views.inputs import LinesField
from studio.views.theme import Theme


@pytest.mark.parametrize("num_lines", [1, 2, 3, 5, 6, 8])
def test_a_field_of_lines_shows_so_many_at_every_size_of_text(
    theme: Theme, page: QWidget, num_lines: int
) -> None:
    field = LinesField(num_lines, page)
    field.show()
    for text_size in (10, 14, 28):
        theme.apply(ThemeChoice.LIGHT, text_size)
        assert halved(page) == []
        field.setPlainText("\n".join("gÄ" for _ in range(num_lines)))
        assert not field.verticalScrollBar().maximum(), "they all have room"
