"""The dialog for files speaks the program's language: sizes and dates too, whatever the system's is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QPushButton,
    QToolButton,
    QTreeView,
    QWidget,
)

from fakes.shots import Spoken
from studio.models.settings import Theme as ThemeChoice
from studio.models.window_settings import Language
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.theme import Theme
from studio.views.translation import speak


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    """The program speaks German."""
    with Spoken():
        speak(qapp, Language.GERMAN)
        yield


def test_sizes_dates_and_words_are_in_the_programs_language(
    german: None, page: QWidget, tmp_path: Path, qtbot: object
) -> None:
    file = tmp_path / "chat.md"
    file.write_bytes(b"x" * 4210)
    moment = datetime(2026, 3, 4, 15, 6).timestamp()
    os.utime(file, (moment, moment))
    (tmp_path / "folder").mkdir()
    dialog = file_dialog(page, "Datei wählen")
    dialog.setDirectory(str(tmp_path))
    dialog.show()
    view = dialog.findChild(QTreeView)
    model = view.model()

    def shown() -> dict[str, list[str]]:
        root = view.rootIndex()
        rows = range(model.rowCount(root))
        cells = [[model.index(row, at, root).data() for at in (0, 1, 3)] for row in rows]
        return {cell[0]: cell[1:] for cell in cells}

    qtbot.waitUntil(lambda: shown().keys() == {"chat.md", "folder"})  # type: ignore[attr-defined]
    assert shown()["chat.md"] == ["4 kB", "04.03.26 15:06"]
    assert shown()["folder"][0] == ""
    words = {
        one.text() for one in (*dialog.findChildren(QLabel), *dialog.findChildren(QPushButton))
    }
    assert {"&Suchen in:", "Abbrechen"} <= words
    header = view.header()
    widths = [header.sectionSize(column) for column in (0, 1, 2, 3)]
    assert sum(widths) <= view.viewport().width(), "nothing is beyond the edge"
    for column in (1, 3):
        assert widths[column] >= max(view.sizeHintForColumn(column), header.sectionSizeHint(column))
    dialog.close()


@pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
def test_the_buttons_to_other_folders_are_seen(
    theme: Theme, page: QWidget, choice: ThemeChoice
) -> None:
    dialog = file_dialog(page, "Choose a file")
    dialog.show()
    theme.apply(choice, 14)
    for name in ("backButton", "forwardButton", "toParentButton"):
        button = dialog.findChild(QToolButton, name)
        picture = button.icon().pixmap(20, QIcon.Mode.Normal).toImage()
        places = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
        drawn = [color for at in places if (color := picture.pixelColor(*at)).alpha() == 255]
        assert drawn, name
        behind = dialog.palette().window().color().lightness()
        assert all(abs(color.lightness() - behind) > 100 for color in drawn), name
    dialog.close()
