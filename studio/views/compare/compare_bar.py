"""Above the panes while a comparison is on: which column is gone on with, or that all are kept. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.services.compare_service import CompareService, alike
from studio.views.compare.share_words import share_words
from studio.views.elided_label import ElidedLabel
from studio.views.labels import line
from studio.views.tasks import Tasks
from studio.views.words import decimal, shortened, tr

_TITLE_CHARS = 32


class CompareBar(QFrame):
    """Hidden while nothing is compared."""

    def __init__(self, comparing: CompareService, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("compareBar")
        self._comparing = comparing
        self._tasks = tasks
        self._text = ElidedLabel(self)
        self.buttons: list[QPushButton] = []
        """One for each column."""
        self._keep_all = QPushButton(tr("Keep all"), self)
        self._keep_all.setObjectName("link")
        self._keep_all.clicked.connect(comparing.dismiss)
        self.shares = line("", "secondary", self)
        """Which columns read as one, where not all do."""
        self._row = QHBoxLayout()
        self._row.setSpacing(8)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 6, 12, 6)
        column.setSpacing(2)
        column.addLayout(self._row)
        column.addWidget(self.shares)
        self._row.addWidget(self._text, 1)
        self._row.addWidget(self._keep_all)
        self._disconnect = comparing.changed.connect(self._show)
        self._show()

    def close_bar(self) -> None:
        """Listen no more."""
        self._disconnect()

    def _show(self) -> None:
        for old in self.buttons:
            self._row.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.buttons = []
        current = self._comparing.current
        self.setVisible(current is not None)
        if current is None:
            return
        title = shortened(current.title, _TITLE_CHARS)
        self._text.set_text(tr("Comparing “{title}”. Go on with:").format(title=title))
        settings = [column.settings for column in current.columns]
        self.shares.setText(share_words(settings))
        self.shares.setVisible(len(alike(settings)) > 1)
        for place, column in enumerate(current.columns):
            self._add_button(place, column)

    def _add_button(self, place: int, column: Conversation) -> None:
        words = difference(place + 1, column.settings)
        button = QPushButton(words, self)
        button.setObjectName("steer")
        button.setToolTip(column.settings.system_prompt)
        button.setAccessibleName(tr("Go on with column {words}").format(words=words))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda: self._tasks.start(self._comparing.pick(column)))
        self._row.insertWidget(1 + place, button)
        self.buttons.append(button)


def difference(place: int, settings: ChatSettings) -> str:
    """A column in few words: "2: temperature 0.8"."""
    heat = decimal(settings.sampling.temperature, 2).rstrip("0").rstrip(".,")
    return tr("{place}: temperature {figure}").format(place=place, figure=heat or "0")
