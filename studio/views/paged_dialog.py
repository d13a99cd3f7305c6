"""A window beside the main one with a list of pages at the left: models, server. GUI thread. Must not import services.

Opened at most once at a time by `DialogOpener`; closing it deletes it.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListWidget,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from studio.views.dialogs.dialog import Dialog
from studio.views.window_size import fit_to_screen
from studio.views.words import tr

_LIST_PX = 168
_LIST_EDGE_PX = 9
"""Padding and hairline of the style sheet."""


class PagedDialog(Dialog):
    """Add pages in their order; `show_page` brings one to the front."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        fit_to_screen(self, QSize(1000, 660))
        self.pages = QListWidget(self)
        self.pages.setObjectName("settingsPages")
        self.pages.setAccessibleName(tr("Pages"))
        self.pages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._stack = QStackedWidget(self)
        self.pages.currentRowChanged.connect(self._stack.setCurrentIndex)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.pages)
        self._column = QVBoxLayout()
        self._column.setSpacing(0)
        self._column.addWidget(self._stack, 1)
        layout.addLayout(self._column, 1)

    def add_above(self, widget: QWidget) -> None:
        """Have something stand above whatever page there is."""
        self._column.insertWidget(0, widget)

    def add_page(self, title: str, page: QWidget) -> None:
        self.pages.addItem(title)
        self._fit_list()
        self._stack.addWidget(page)
        if self._stack.count() == 1:
            self.pages.setCurrentRow(0)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit_list()

    def show_page(self, index: int) -> None:
        self.pages.setCurrentRow(index)

    def show_setting(self, key: str) -> None:
        """Turn to a setting, by its key, and let the keyboard change it; for windows that have some."""
        raise NotImplementedError

    def set_page_title(self, index: int, title: str) -> None:
        self.pages.item(index).setText(title)
        self._fit_list()

    def _fit_list(self) -> None:
        """As wide as it likes to be, or as its longest word needs."""
        words_px = self.pages.sizeHintForColumn(0) + 2 * _LIST_EDGE_PX
        self.pages.setFixedWidth(max(_LIST_PX, words_px))


class DialogOpener:
    """`dialog` is the open one, or None."""

    def __init__(self, make: Callable[[], PagedDialog]) -> None:
        self.dialog: PagedDialog | None = None
        self._make = make

    def open(self, page: int | None = None, *, setting: str = "") -> None:
        """Show it, or bring it to the front; at a page, or a setting by its key, where one is named."""
        if self.dialog is None:
            self.dialog = self._make()
            self.dialog.finished.connect(self._on_finished)
        if page is not None:
            self.dialog.show_page(page)
        self.dialog.show()
        if setting:
            self.dialog.show_setting(setting)
        self.dialog.activateWindow()

    def close(self) -> None:
        """Close it if it is open, whatever it would ask first."""
        if self.dialog is not None:
            self.dialog.done(0)

    def _on_finished(self) -> None:
        self.dialog = None


def scrolled(name: str, inner: QWidget, parent: QWidget) -> QScrollArea:
    """`inner` in an area that scrolls up and down only."""
    inner.setObjectName("settingsPage")
    area = QScrollArea(parent)
    area.setObjectName("settingsArea")
    area.setAccessibleName(name)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(inner)
    return area


def page_column(page: QWidget) -> QVBoxLayout:
    """The margins and spacing that every page has."""
    column = QVBoxLayout(page)
    column.setContentsMargins(24, 20, 24, 20)
    column.setSpacing(12)
    return column


def card(parent: QWidget) -> tuple[QFrame, QVBoxLayout]:
    """A frame with a hairline, for one thing in a list."""
    frame = QFrame(parent)
    frame.setObjectName("card")
    column = QVBoxLayout(frame)
    column.setContentsMargins(16, 12, 12, 12)
    column.setSpacing(4)
    return frame, column
