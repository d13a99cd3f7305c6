"""Every command with its keys, and the keys of lists and fields, in a window to be left open. GUI thread.

Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from studio.views.actions import COMMANDS, Menu, plain
from studio.views.dialogs.dialog import Dialog
from studio.views.focus_ring import FocusRing
from studio.views.labels import hairline
from studio.views.shortcuts import Shortcuts, shown
from studio.views.window_size import fit_to_screen
from studio.views.words import tr


class ShortcutList(Dialog):
    """Made anew each time it is opened, so it shows what is so now."""

    change_wanted = Signal()

    def __init__(self, shortcuts: Shortcuts, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Shortcuts"))
        fit_to_screen(self, QSize(max(520, 30 * self.fontMetrics().height()), 640))
        inner = QWidget(self)
        inner.setObjectName("settingsPage")
        self._grid = QGridLayout(inner)
        self._grid.setContentsMargins(24, 8, 24, 16)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(0, 1)
        keys = shortcuts.keys
        for menu in Menu:
            self._head(plain(tr(menu.value)))
            for command in COMMANDS:
                if command.menu is menu:
                    self._row(plain(tr(command.text)), shown(keys[command.id]))
        self._add_fixed()
        area = QScrollArea(self)
        area.setObjectName("settingsArea")
        area.setAccessibleName(tr("Shortcuts"))
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inner)
        FocusRing(area)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 16)
        layout.addWidget(area, 1)
        layout.addWidget(hairline(self))
        layout.addLayout(self._make_foot())

    def _make_foot(self) -> QHBoxLayout:
        change = QPushButton(tr("Change shortcuts…"), self)
        change.setAutoDefault(False)
        change.clicked.connect(self.change_wanted)
        change.clicked.connect(self.close)
        close = QPushButton(tr("Close"), self)
        close.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.setContentsMargins(24, 8, 24, 0)
        foot.addWidget(change)
        foot.addStretch(1)
        foot.addWidget(close)
        return foot

    def _add_fixed(self) -> None:
        self._head(tr("In lists and fields"))
        self._row(tr("Send the message"), shown(("Enter",)))
        self._row(tr("A new line in the message"), shown(("Shift+Enter",)))
        self._row(tr("Open the chat in the list"), shown(("Enter",)))
        self._row(tr("Delete what is selected in the list"), shown(("Del",)))
        self._row(tr("Move the folder in the list"), shown(("Alt+Up", "Alt+Down")))
        self._row(tr("To the first message, to the end"), shown(("Home", "End")))
        self._row(tr("From one message's buttons to the next"), shown(("Up", "Down")))
        self._row(tr("The next control, the one before"), shown(("Tab", "Shift+Tab")))

    def _head(self, text: str) -> None:
        label = QLabel(text, self)
        label.setObjectName("title")
        label.setContentsMargins(0, 12, 0, 0)
        self._grid.addWidget(label, self._grid.rowCount(), 0, 1, 2)

    def _row(self, text: str, keys: str) -> None:
        row = self._grid.rowCount()
        name = QLabel(text, self)
        name.setWordWrap(True)
        by = QLabel(keys or tr("no keys"), self)
        by.setObjectName("body")
        self._grid.addWidget(name, row, 0)
        self._grid.addWidget(by, row, 1, Qt.AlignmentFlag.AlignRight)
