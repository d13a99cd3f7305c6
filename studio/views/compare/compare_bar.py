"""Above the panes while a comparison is on: which column is gone on with, or that all are kept. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QWidget

from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.services.compare_service import CompareService
from studio.views.compare.share_words import share_words
from studio.views.elided_label import ElidedLabel
from studio.views.status_words import joined
from studio.views.tasks import Tasks
from studio.views.words import decimal, shortened, tr

_TITLE_CHARS = 32
_GAP_PX = 8


class CompareBar(QFrame):
    """Hidden while nothing is compared. One line: a button for each column, or a menu where they have no room."""

    def __init__(self, comparing: CompareService, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("compareBar")
        self._comparing = comparing
        self._tasks = tasks
        self._text = ElidedLabel(self)
        self.buttons: list[QPushButton] = []
        """One for each column."""
        self.choose = QPushButton(tr("Go on with…"), self)
        self.choose.setObjectName("steer")
        self.choose.setMenu(QMenu(self.choose))
        self._keep_all = QPushButton(tr("Keep all"), self)
        self._keep_all.setObjectName("link")
        self._keep_all.clicked.connect(comparing.dismiss)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 6, 12, 6)
        self._row.setSpacing(_GAP_PX)
        self._row.addWidget(self._text)
        self._row.addWidget(self.choose)
        self._row.addStretch(1)
        self._row.addWidget(self._keep_all)
        self._disconnect = comparing.changed.connect(self._show)
        self._show()

    def close_bar(self) -> None:
        """Listen no more."""
        self._disconnect()

    def minimumSizeHint(self) -> QSize:
        """That of the line with the menu."""
        parts = (self._text.minimumSizeHint(), self.choose.sizeHint(), self._keep_all.sizeHint())
        return QSize(self._width_of(parts), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _show(self) -> None:
        for old in self.buttons:
            self._row.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.buttons = []
        self.choose.menu().clear()
        current = self._comparing.current
        self.setVisible(current is not None)
        if current is None:
            return
        usual = current.columns[0].settings.system_prompt
        for column in current.columns:
            self._add_button(column, difference(current.place(column), column.settings, usual))
        self._fit()

    def _add_button(self, column: Conversation, words: str) -> None:
        button = QPushButton(words, self)
        button.setObjectName("steer")
        button.setToolTip(column.settings.system_prompt)
        button.setAccessibleName(tr("Go on with column {words}").format(words=words))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.clicked.connect(lambda: self._pick(column))
        self.choose.menu().addAction(words, lambda: self._pick(column))
        self._row.insertWidget(1 + len(self.buttons), button)
        self.buttons.append(button)

    def _fit(self) -> None:
        """Buttons where all of them and the words have room."""
        current = self._comparing.current
        if current is None:
            return
        title = shortened(current.title, _TITLE_CHARS)
        self._text.set_text(tr("Comparing “{title}”. Go on with:").format(title=title))
        parts = [one.sizeHint() for one in (self._text, *self.buttons, self._keep_all)]
        has_room = self._width_of(parts) <= self.width()
        if not has_room:
            self._text.set_text(tr("Comparing “{title}”").format(title=title))
        shares = share_words([column.settings for column in current.made])
        self._text.setToolTip(f"{title}\n{shares}")
        for button in self.buttons:
            button.setVisible(has_room)
        self.choose.setVisible(not has_room)

    def _width_of(self, parts: Sequence[QSize]) -> int:
        margins = self._row.contentsMargins()
        gaps_px = _GAP_PX * (len(parts) - 1)
        return margins.left() + sum(part.width() for part in parts) + gaps_px + margins.right()

    def _pick(self, column: Conversation) -> None:
        self._tasks.start(self._comparing.pick(column))


def difference(place: int, settings: ChatSettings, usual_prompt: str) -> str:
    """A column in few words: "2: temperature 0.8"; whether its system prompt is another than the first column's."""
    heat = decimal(settings.sampling.temperature, 2).rstrip("0").rstrip(".,")
    words = tr("{place}: temperature {figure}").format(place=place, figure=heat or "0")
    is_other = settings.system_prompt.strip() != usual_prompt.strip()
    return joined(words, tr("other system prompt") if is_other else "")
