"""A chat as a PDF: its Markdown laid out on A4 pages, with page numbers. GUI thread; must not import services.

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
    QTextDocument,
)

from studio.views.words import count

_DPI = 96
_MARGIN_MM = 20.0
_TEXT_PX = 13
_FOOT_PX = 28
_STYLE = (
    "h1 { font-size: 20px; } h2 { font-size: 14px; color: #0b7268; } code, pre { font-size: 12px; }"
)


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
    page = QPageLayout(
        QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, margins
    )
    writer.setPageLayout(page)
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
    document.setDefaultStyleSheet(_STYLE)
    features = QTextDocument.MarkdownFeature
    document.setMarkdown(markdown, features.MarkdownDialectGitHub | features.MarkdownNoHTML)
    return document


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
