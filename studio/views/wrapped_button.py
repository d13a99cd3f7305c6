"""A button whose words stand in several lines where one has no room for them. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetrics, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget


class WrappedButton(QPushButton):
    """Set its words with `set_words`; they are in one line where that fits, and never cut."""

    def __init__(self, parent: QWidget, words: str = "") -> None:
        super().__init__(parent)
        self._words = ""
        self._liked_px = 0
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.set_words(words)

    def set_words(self, words: str) -> None:
        """What the button says, also to a screen reader."""
        if words != self._words:
            self._words = words
            self.setAccessibleName(words)
            self.setText(words)
            if self.isVisible():
                self._fit()

    @property
    def words(self) -> str:
        """All in one line, however they stand on it."""
        return self._words

    def set_liked_px(self, width: int) -> None:
        """Be so wide where there is room, as the buttons above and below."""
        self._liked_px = width
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """As wide as all its words in one line."""
        size = self._frame + self.fontMetrics().size(0, self._words)
        return size.expandedTo(QSize(self._liked_px, 0))

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        longest = max(map(metrics.horizontalAdvance, self._words.split()), default=0)
        return self._frame + QSize(longest, metrics.height())

    def heightForWidth(self, width: int) -> int:
        return self._frame.height() + self.fontMetrics().size(0, self._wrapped(width)).height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def _fit(self) -> None:
        text = self._wrapped(self.width())
        if text != self.text():
            self.setText(text)

    def _wrapped(self, width: int) -> str:
        return wrapped(self._words, self.fontMetrics(), width - self._frame.width())

    @property
    def _frame(self) -> QSize:
        """What the style puts around the words."""
        return super().sizeHint() - self.fontMetrics().size(0, self.text())


def wrapped(words: str, metrics: QFontMetrics, width_px: int) -> str:
    """The words in lines of at most that width, where they can be parted."""
    lines: list[str] = []
    for word in words.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= width_px:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)
