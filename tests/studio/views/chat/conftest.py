"""What the rows of a transcript are made with in tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QWidget

from studio.views.chat.formulas import Formulas
from studio.views.chat.kit import Kit
from studio.views.chat.slices import Slices
from studio.views.theme import Theme


@pytest.fixture
def kit(theme: Theme, page: QWidget) -> Iterator[Kit]:
    """Of the light theme; its worker has ended when the test has."""
    made = Kit(theme, Formulas(page), Slices(page))
    yield made
    made.formulas.close()
