"""Screenshots for people to look at: written where TEST_SCREENSHOTS names a folder, else not at all.

`fakes.gallery` takes them in other languages, on other screens and in both themes: TEST_LANGUAGE (de) and TEST_WINDOW
(1920x1080) are what it tells the tests, TEST_THEMES (light,dark) has each picture taken in each of these.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QSize, QTranslator
from PySide6.QtWidgets import QApplication, QWidget

from studio.models.settings import Theme as ThemeChoice
from studio.models.window_settings import Language
from studio.views.main_window import MainWindow
from studio.views.translation import speak
from studio.views.words import tr

VARIABLE = "TEST_SCREENSHOTS"


def window_size() -> QSize:
    """How large the main window is in tests."""
    width, _, height = os.environ.get("TEST_WINDOW", "1280x800").partition("x")
    return QSize(int(width), int(height))


class Spoken:
    """While it is entered the program speaks TEST_LANGUAGE; English where there is none."""

    def __enter__(self) -> None:
        self._before = QLocale()
        self._app = QCoreApplication.instance()
        if (language := os.environ.get("TEST_LANGUAGE")) and self._app is not None:
            speak(self._app, Language(language))

    def __exit__(self, *_: object) -> None:
        if self._app is not None:
            for translator in self._app.findChildren(QTranslator):
                self._app.removeTranslator(translator)
                translator.deleteLater()
        QLocale.setDefault(self._before)


def lay_out() -> None:
    """Give everything its place now, also in the midst of a coroutine, where Qt's events may not be processed."""
    for _ in range(3):  # what has its place may give others theirs
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)


def head(sentence: str) -> str:
    """A sentence in the window's language, up to its first figure."""
    return tr(sentence).partition("{")[0]


def shoot(widget: QWidget, name: str) -> None:
    """Grab a widget as it is on screen into NAME.png, or into NAME-THEME.png for each of TEST_THEMES."""
    if not (folder := os.environ.get(VARIABLE)):
        return
    if not (themes := os.environ.get("TEST_THEMES")):
        _save(widget, Path(folder) / f"{name}.png")
        return
    windows = [one for one in QApplication.topLevelWidgets() if isinstance(one, MainWindow)]
    for theme in themes.split(","):
        _dress(windows, ThemeChoice(theme))
        _save(widget, Path(folder) / f"{name}-{theme}.png")
    _dress(windows, None)


def _dress(windows: Sequence[MainWindow], choice: ThemeChoice | None) -> None:
    """Dress them so; None: as they are set."""
    for window in windows:
        appearance = window.context.services.settings.settings.appearance
        window.context.theme.apply(choice or appearance.theme, appearance.text_size)


def _save(widget: QWidget, path: Path) -> None:
    lay_out()
    path.parent.mkdir(parents=True, exist_ok=True)
    assert widget.grab().save(str(path)), path
