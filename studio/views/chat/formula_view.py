"""A formula of its own line, drawn in the middle; its source where it cannot be drawn. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from studio.views.chat.kit import Kit
from studio.views.chat.typesetting import Formula
from studio.views.words import tr

_PAD_PX = 6
_FLAGS = Qt.TextFlag.TextWrapAnywhere | Qt.AlignmentFlag.AlignHCenter


class FormulaView(QWidget):
    """`set_latex` takes the source so far; it is typeset only once it is whole."""

    text_edit = None
    """It is taken whole or not at all."""

    def __init__(self, kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self._kit = kit
        self._latex = ""
        self._is_whole = False
        self._is_selected = False
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)

    def set_latex(self, latex: str, *, is_whole: bool) -> None:
        """Show a formula; while it is not whole, its source."""
        self._latex, self._is_whole = latex.strip(), is_whole
        self.setAccessibleName(tr("Formula"))
        self.setAccessibleDescription(self._latex)
        self.setToolTip(self._latex if is_whole else "")
        self.update()

    def refresh(self) -> None:
        """It may be drawn now."""
        self.update()

    def set_selected(self, *, is_selected: bool) -> None:
        if is_selected != self._is_selected:
            self._is_selected = is_selected
            self.update()

    @property
    def is_drawn(self) -> bool:
        """Whether the formula is shown, and not its source."""
        return self._formula() is not None

    def sizeHint(self) -> QSize:
        return QSize(self.width(), self.heightForWidth(self.width()))

    def heightForWidth(self, width: int) -> int:
        formula = self._formula()
        if formula is None:
            return self._source_box(width).height() + 2 * _PAD_PX
        return round(self._drawn_size(formula, width).height()) + 2 * _PAD_PX

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._kit.theme
        painter = QPainter(self)
        if self._is_selected:
            painter.fillRect(self.rect(), theme.colors.selected)
        formula = self._formula()
        if formula is None:
            painter.setFont(theme.code_font())
            painter.setPen(theme.colors.secondary)
            box = self.rect().adjusted(0, _PAD_PX, 0, -_PAD_PX)
            painter.drawText(box, int(_FLAGS), self._latex)
        else:
            scale = self.devicePixelRatioF()
            size = self._drawn_size(formula, self.width())
            share = size.width() / max(1.0, formula.width * theme.text_px)
            image = self._kit.formulas.image(
                self._latex, theme.text_px, theme.colors.text, scale * min(1.0, share)
            )
            if image is not None:
                left = round((self.width() - size.width()) / 2 * scale) / scale
                painter.drawImage(QRectF(QPointF(left, _PAD_PX), size), image)
        painter.end()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange):
            self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        copy = menu.addAction(tr("Copy the LaTeX"))
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(self._latex))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos())

    def _formula(self) -> Formula | None:
        if not self._is_whole:
            return None
        found = self._kit.formulas.get(self._latex, is_display=True)
        return found if isinstance(found, Formula) else None

    def _drawn_size(self, formula: Formula, width: int) -> QSizeF:
        """Smaller where it would not fit: a formula has no lines to break."""
        px = self._kit.theme.text_px
        size = QSizeF(formula.width * px, formula.height * px)
        if size.width() > width > 0:
            size.scale(width, size.height(), Qt.AspectRatioMode.KeepAspectRatio)
        return size

    def _source_box(self, width: int) -> QRect:
        painter_font = self._kit.theme.code_font()
        box = QRect(0, 0, max(1, width), 10_000)
        return QFontMetrics(painter_font).boundingRect(box, int(_FLAGS), self._latex or " ")
