"""The settings' page of privacy: what Layby sends (nothing), stores where, and how to be rid of it. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl, Signal, SignalInstance
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from studio.services.support_service import Stored, StoredKind, SupportService
from studio.views.elided_label import ElidedLabel
from studio.views.tasks import Tasks
from studio.views.words import size, tr


class PrivacyPage(QWidget):
    """Nothing on it is a setting: there is nothing to switch off."""

    keys: tuple[str, ...] = ()
    bundle_wanted = Signal()
    delete_wanted = Signal()

    def __init__(self, support: SupportService, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self._support = support
        self._tasks = tasks
        self._rows: list[QWidget] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        for text in (
            tr(
                "Layby sends nothing about you: no statistics, no crash reports, no check for updates."
            ),
            tr(
                "It goes online only when you search for a model or download one. The local server listens only while "
                "you have switched it on."
            ),
        ):
            layout.addWidget(_paragraph(text, self))
        layout.addWidget(_heading(tr("What is stored on this machine"), self))
        layout.addLayout(self._grid)
        layout.addWidget(_heading(tr("When something does not work"), self))
        layout.addWidget(
            _paragraph(tr("A log bundle holds no chats and no keys, and you see it first."), self)
        )
        layout.addWidget(self._button(tr("Create log bundle…"), self.bundle_wanted))
        layout.addWidget(_heading(tr("Leave nothing behind"), self))
        layout.addWidget(
            _paragraph(
                tr("Deletes all chats, settings, keys and logs, and quits. Models stay."), self
            )
        )
        layout.addWidget(self._button(tr("Delete everything…"), self.delete_wanted))
        self.refresh()

    def refresh(self) -> None:
        """Measure again."""
        self._tasks.start(self._measure())

    async def _measure(self) -> None:
        stored = await self._support.stored()
        if not isValid(self):  # closed meanwhile
            return
        for old in self._rows:
            self._grid.removeWidget(old)
            old.deleteLater()
        self._rows.clear()
        for row, one in enumerate(stored):
            self._add(row, one)

    def _add(self, row: int, one: Stored) -> None:
        name = QLabel(kind_words(one.kind), self)
        path = ElidedLabel(self, Qt.TextElideMode.ElideMiddle)
        path.setObjectName("body")
        path.set_text(str(one.path))
        room = QLabel(size(one.size_bytes), self)
        room.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        opener = QPushButton(tr("Open"), self)
        opener.setObjectName("quiet")
        opener.setAutoDefault(False)
        opener.setAccessibleName(tr("Open the folder: {name}").format(name=kind_words(one.kind)))
        opener.setEnabled(one.path.is_dir())
        opener.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(one.path))))
        for column, widget in enumerate((name, path, room, opener)):
            self._grid.addWidget(widget, row, column)
            self._rows.append(widget)

    def _button(self, text: str, wanted: SignalInstance) -> QPushButton:
        button = QPushButton(text, self)
        button.setAutoDefault(False)
        button.clicked.connect(wanted)
        button.setMaximumWidth(button.sizeHint().width())
        return button


def kind_words(kind: StoredKind) -> str:
    """What is stored, in a word or two."""
    return {
        StoredKind.CHATS: tr("Chats"),
        StoredKind.MODELS: tr("Models"),
        StoredKind.SETTINGS: tr("Settings and keys"),
        StoredKind.CACHE: tr("Cache"),
        StoredKind.LOGS: tr("Logs"),
    }[kind]


def _heading(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setObjectName("title")
    return label


def _paragraph(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setObjectName("body")
    label.setWordWrap(True)
    return label
