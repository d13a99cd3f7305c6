"""Why Layby does not start, for somebody who has no terminal to read it in. GUI thread; before there is any loop."""

from __future__ import annotations

from PySide6.QtWidgets import QMessageBox

from studio.models.notices import Notice
from studio.views.error_words import detail_words
from studio.views.icons import app_icon
from studio.views.words import tr


def show_refusal(notice: Notice) -> None:
    """Say it in a window of its own; returns once that has been closed."""
    box = QMessageBox(QMessageBox.Icon.Warning, "Layby", tr(notice.text))
    box.setInformativeText(detail_words(notice.detail, notice.code))
    box.setWindowIcon(app_icon())
    box.exec()
