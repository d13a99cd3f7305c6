"""Which Layby this is, on what it runs, and what to tell somebody who helps. GUI thread."""

from __future__ import annotations

import platform
from collections.abc import Callable

from PySide6.QtCore import QLibraryInfo, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from studio import __version__
from studio.views.dialogs.dialog import Dialog
from studio.views.icons import app_icon
from studio.views.labels import line
from studio.views.words import tr

_WIDTH_PX = 460
_ICON_PX = 64


class AboutDialog(Dialog):
    """`create_bundle` is called for the log bundle. Deleted when it is closed."""

    def __init__(self, create_bundle: Callable[[], object], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("About Layby"))
        self.setMinimumWidth(_WIDTH_PX)
        icon = QLabel(self)
        icon.setPixmap(app_icon().pixmap(_ICON_PX, _ICON_PX))
        icon.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._facts = line(facts(), "secondary", self)
        self._facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words = QVBoxLayout()
        words.setSpacing(8)
        words.addWidget(line(f"Layby {__version__}", "heading", self))
        words.addWidget(
            line(tr("Chats that share one model and wait for each other"), "body", self)
        )
        words.addWidget(self._facts)
        words.addWidget(
            line(
                tr(
                    "Free software under the Apache License 2.0. It opens no socket before you ask for something, "
                    "so it looks for no newer version either."
                ),
                "secondary",
                self,
            )
        )
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(icon)
        head.addLayout(words, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(16)
        layout.addLayout(head)
        layout.addLayout(self._make_foot(create_bundle))

    def _make_foot(self, create_bundle: Callable[[], object]) -> QHBoxLayout:
        self.copy = QPushButton(tr("Copy"), self)
        self.copy.setAccessibleName(tr("Copy the version and what it runs on"))
        self.copy.setAutoDefault(False)
        self.copy.clicked.connect(self._copy)
        self.bundle = QPushButton(tr("Create log bundle…"), self)
        self.bundle.setAutoDefault(False)
        self.bundle.clicked.connect(create_bundle)
        self.bundle.clicked.connect(self.close)
        close = QPushButton(tr("Close"), self)
        close.setDefault(True)
        close.clicked.connect(self.close)
        close.setFocus()
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self.copy)
        foot.addWidget(self.bundle)
        foot.addStretch(1)
        foot.addWidget(close)
        return foot

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(f"Layby {__version__}\n{facts()}")
        self.copy.setText(tr("Copied"))


def facts() -> str:
    """What a program's trouble may come from, a line each: the system, Python, Qt."""
    qt = QLibraryInfo.version().toString()
    return f"{platform.platform()}\nPython {platform.python_version()}, Qt {qt}"
