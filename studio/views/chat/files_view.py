"""The files that went with a prompt, by name and cost, above its bubble. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from studio.models.attachment import Attachment
from studio.views.chat.attachment_bar import cost_words
from studio.views.chat.kit import Kit
from studio.views.icons import pixmap
from studio.views.words import tr

_CHIP_PX = 28
_GAP_PX = 6
_PAD_PX = 10
_ICON_PX = 14
_MOST_PX = 320


class FilesView(QWidget):
    """One chip for each, at the right, in as many lines as that takes."""

    text_edit = None

    def __init__(self, files: tuple[Attachment, ...], kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self._files = files
        self._theme = kit.theme
        told = [_told(one) for one in files]
        self.setAccessibleName(tr("Files: {names}").format(names=", ".join(told)))
        self.setToolTip("\n".join(told))

    def heightForWidth(self, width: int) -> int:
        boxes = self._boxes(width)
        return max(box.bottom() for box in boxes) + 1 + _GAP_PX if boxes else 0

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        colors, font = self._theme.colors, self._theme.font(self._theme.small_px)
        painter.setFont(font)
        metrics, scale = QFontMetrics(font), self.devicePixelRatioF()
        for box, one in zip(self._boxes(self.width()), self._files, strict=True):
            painter.setPen(QPen(colors.border, 1))
            painter.drawRoundedRect(box.adjusted(0, 0, -1, -1), 8, 8)
            icon = pixmap("attach", colors.secondary, _ICON_PX, scale=scale)
            painter.drawPixmap(box.left() + _PAD_PX, box.top() + (_CHIP_PX - _ICON_PX) // 2, icon)
            words = box.adjusted(_PAD_PX + _ICON_PX + 6, 0, -_PAD_PX, 0)
            painter.setPen(colors.text)
            shown = metrics.elidedText(_told(one), Qt.TextElideMode.ElideMiddle, words.width())
            painter.drawText(words, int(Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()

    def _boxes(self, width: int) -> list[QRect]:
        metrics = QFontMetrics(self._theme.font(self._theme.small_px))
        lines: list[list[int]] = [[]]
        for one in self._files:
            chip_px = min(
                _MOST_PX,
                width,
                metrics.horizontalAdvance(_told(one)) + 2 * _PAD_PX + _ICON_PX + 8,
            )
            if lines[-1] and sum(lines[-1]) + len(lines[-1]) * _GAP_PX + chip_px > width:
                lines.append([])
            lines[-1].append(chip_px)
        boxes = []
        for number, line in enumerate(lines):
            left = width - sum(line) - _GAP_PX * (len(line) - 1)
            for chip_px in line:
                boxes.append(QRect(left, number * (_CHIP_PX + _GAP_PX), chip_px, _CHIP_PX))
                left += chip_px + _GAP_PX
        return boxes


def _told(one: Attachment) -> str:
    return f"{one.name} · {cost_words(one)}"
