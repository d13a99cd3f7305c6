"""Why Layby does not start, for somebody who has no terminal to read it in. GUI thread; before there is any loop.

Must not import services.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from PySide6.QtCore import Qt, QThread
from PySide6.QtWidgets import QApplication, QMessageBox

from studio.models.errors import StoreFull
from studio.models.notices import Notice
from studio.models.settings import AppearanceSettings
from studio.views.error_words import as_sentence, detail_words
from studio.views.icons import app_icon
from studio.views.theme import Theme
from studio.views.words import tr


def may_try_again(notice: Notice, appearance: AppearanceSettings) -> bool:
    """Say it in a window of its own, in the program's look; whether the user wants it tried again."""
    is_full = notice.code == StoreFull.code
    full = tr("The disk is full: the chats cannot be opened")
    with _refusal(notice, appearance) as box:
        box.setText(full if is_full else tr("The chats cannot be opened"))
        again = box.addButton(tr("Try again"), QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(again)
        box.exec()
        return box.clickedButton() is again


def say_while(thread: QThread, notice: Notice, appearance: AppearanceSettings) -> None:
    """Say it for as long as a thread runs that tries by itself, or until the user has closed it."""
    with _refusal(notice, appearance) as box:
        thread.finished.connect(box.accept)
        if not thread.isFinished():
            box.exec()


@contextmanager
def _refusal(notice: Notice, appearance: AppearanceSettings) -> Iterator[QMessageBox]:
    theme = Theme(cast(QApplication, QApplication.instance()))
    theme.apply(appearance.theme, appearance.text_size)
    box = QMessageBox(QMessageBox.Icon.Warning, "Layby", tr(notice.text))
    box.setInformativeText(as_sentence(detail_words(notice.detail, notice.code)))
    box.setWindowIcon(app_icon())
    box.setWindowFlag(Qt.WindowType.WindowStaysOnTopHint)  # not below a window that is coming
    close = box.addButton(tr("Close"), QMessageBox.ButtonRole.RejectRole)
    box.setEscapeButton(close)
    try:
        yield box
    finally:
        box.deleteLater()
        theme.close()
