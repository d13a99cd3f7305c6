"""A formula among the words of a document: how it is measured, placed on the line and drawn. GUI thread.

Qt lets an object stand on the line or have its middle at the middle of the letters. Formulas go down below the line by
their own measure, so they get room above or below until the second of these is the right place.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF
from PySide6.QtGui import (
    QFontMetrics,
    QPainter,
    QPyTextObject,
    QTextBlock,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)

from studio.views.chat.kit import Kit
from studio.views.chat.typesetting import Formula

FORMULA = QTextFormat.ObjectTypes.UserObject.value + 1
LATEX = QTextFormat.Property.UserProperty.value + 1
_FLAT_EM = 0.09
"""A depth that is only the margin of the picture."""


def formula_format(latex: str, kit: Kit, around: QTextCharFormat) -> QTextCharFormat | None:
    """The format of the character that stands for a formula; None while it cannot be drawn."""
    formula = kit.formulas.get(latex, is_display=False)
    if not isinstance(formula, Formula):
        return None
    form = QTextCharFormat(around)
    form.setObjectType(FORMULA)
    form.setProperty(LATEX, latex)
    if formula.depth > _FLAT_EM:
        form.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignMiddle)
    return form


def has_formula(block: QTextBlock) -> bool:
    """Whether a formula stands in this paragraph."""
    return "\ufffc" in block.text()


def register(document: QTextDocument, kit: Kit) -> None:
    """Have the formulas of a document drawn."""
    document.documentLayout().registerHandler(FORMULA, FormulaObject(kit, document))


class FormulaObject(QPyTextObject):
    """Draws the formulas of one document, in the colours that the theme has when it is painted."""

    def __init__(self, kit: Kit, document: QTextDocument) -> None:
        super().__init__(document)
        self._kit = kit

    def intrinsicSize(self, document: QTextDocument, _place: int, form: QTextFormat) -> QSizeF:
        formula = self._kit.formulas.get(str(form.property(LATEX)), is_display=False)
        if not isinstance(formula, Formula):
            return QSizeF()
        px = self._kit.theme.text_px
        above, below = self._padding(formula, form)
        if formula.depth <= _FLAT_EM:
            return QSizeF(formula.width * px, (formula.height - formula.depth) * px)
        return QSizeF(formula.width * px, formula.height * px + above + below)

    def drawObject(self, painter: QPainter, rect: QRectF | QRect, *where: Any) -> None:
        """`where` is what Qt passes on: the document, the place in it, and the format there."""
        form: QTextFormat = where[2]
        latex = str(form.property(LATEX))
        formulas, theme = self._kit.formulas, self._kit.theme
        formula = formulas.get(latex, is_display=False)
        scale = painter.device().devicePixelRatioF()
        brush = form.foreground()
        color = brush.color() if form.hasProperty(_FOREGROUND) else theme.colors.text
        image = formulas.inline_image(latex, theme.text_px, color, scale)
        if image is None or not isinstance(formula, Formula):
            return
        above, _below = self._padding(formula, form)
        top = rect.top() + (above if formula.depth > _FLAT_EM else 0)
        corner = QPointF(round(rect.left() * scale) / scale, round(top * scale) / scale)
        size = QSizeF(image.width() / scale, image.height() / scale)
        painter.drawImage(QRectF(corner, size), image)

    def _padding(self, formula: Formula, form: QTextFormat) -> tuple[float, float]:
        """(above, below) so that Qt's middle puts the formula's line on the line of the words."""
        px = self._kit.theme.text_px
        half_x = QFontMetrics(form.toCharFormat().font()).xHeight() / 2
        depth = formula.depth * px
        excess = formula.height * px - 2 * depth - half_x
        return (0.0, excess) if excess > 0 else (-excess, 0.0)


_FOREGROUND = QTextFormat.Property.ForegroundBrush
