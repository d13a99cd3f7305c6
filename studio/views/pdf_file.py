"""A chat as a PDF: its Markdown laid out on A4 pages, with page numbers. Any thread; must not import services.

Raw HTML of a model stays text, and nothing is loaded from anywhere.
"""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from studio.views.words import count

_DPI = 96
_MARGIN_MM = 20.0
_TEXT_PX = 13
_FOOT_PX = 28
_CODE_PX = 11
_HEAD_PX = {1: 22, 2: 14}
"""By level; deeper ones, which are a model's own, as the text."""
_ABOVE_PX = {1: 0, 2: 18}
_BELOW_PX = 7
_OURS = 2
"""The level of "You" and "Reply"."""
_ACCENT, _CODE_GROUND = QColor("#0b7268"), QColor("#f1f4f4")


def to_pdf(markdown: str, title: str, family: str) -> bytes:
    """The file's bytes; `family` is the font of the text."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(_DPI)
    writer.setTitle(title)
    writer.setCreator("Layby")
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    size, portrait = QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait
    writer.setPageLayout(QPageLayout(size, portrait, margins, QPageLayout.Unit.Millimeter))
    room = QSizeF(writer.width(), writer.height() - _FOOT_PX)
    document = _document(markdown, family)
    document.setPageSize(room)
    _paint(document, writer, room)
    buffer.close()
    return bytes(data.data())


def _document(markdown: str, family: str) -> QTextDocument:
    document = _Quiet()
    font = QFont(family)
    font.setPixelSize(_TEXT_PX)
    document.setDefaultFont(font)
    document.setDocumentMargin(0)
    features = QTextDocument.MarkdownFeature
    document.setMarkdown(markdown, features.MarkdownDialectGitHub | features.MarkdownNoHTML)
    block = document.begin()
    while block.isValid():
        _dress(block)
        block = block.next()
    return document


def _dress(block: QTextBlock) -> None:
    """Room between paragraphs, headings of our own sizes, and code that is broken rather than cut off."""
    form, cursor = block.blockFormat(), QTextCursor(block)
    is_code = _is_code(block)
    ends_piece = not is_code or not _is_code(block.next())
    if not block.textList() and cursor.currentTable() is None and ends_piece:
        form.setBottomMargin(_BELOW_PX)
    cursor.movePosition(cursor.MoveOperation.EndOfBlock, cursor.MoveMode.KeepAnchor)
    letters = QTextCharFormat()
    if level := form.headingLevel():
        form.setTopMargin(_ABOVE_PX.get(level, _BELOW_PX))
        letters.setProperty(QTextFormat.Property.FontPixelSize, _HEAD_PX.get(level, _TEXT_PX))
        letters.setFontWeight(QFont.Weight.DemiBold)
        if level == _OURS:
            letters.setForeground(_ACCENT)
        cursor.setCharFormat(letters)  # not merged: what Qt gives headings would win over sizes
    elif is_code:
        form.setNonBreakableLines(False)
        form.setBackground(_CODE_GROUND)
        letters.setProperty(QTextFormat.Property.FontPixelSize, _CODE_PX)
        cursor.mergeCharFormat(letters)
    QTextCursor(block).setBlockFormat(form)


def _is_code(block: QTextBlock) -> bool:
    form, kinds = block.blockFormat(), QTextFormat.Property
    return form.hasProperty(kinds.BlockCodeFence) or form.hasProperty(kinds.BlockCodeLanguage)


def _paint(document: QTextDocument, writer: QPdfWriter, room: QSizeF) -> None:
    painter = QPainter(writer)
    pages = document.pageCount()
    for page in range(pages):
        if page:
            writer.newPage()
        painter.save()
        painter.translate(0, -page * room.height())
        _draw_page(document, painter, QRectF(0, page * room.height(), room.width(), room.height()))
        painter.restore()
        foot = QRectF(0, room.height(), room.width(), _FOOT_PX)
        painter.setPen(QColor("#586262"))
        bottom = Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignHCenter
        painter.drawText(foot, int(bottom), f"{count(page + 1)} / {count(pages)}")
    painter.end()


def _draw_page(document: QTextDocument, painter: QPainter, part: QRectF) -> None:
    context = QAbstractTextDocumentLayout.PaintContext()
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Text, QColor("#1b2020"))
    context.palette = palette  # black on white, whatever the theme
    context.clip = part
    painter.setClipRect(part)
    document.documentLayout().draw(painter, context)


class _Quiet(QTextDocument):
    """Loads nothing, from no disk and no network."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        return None
