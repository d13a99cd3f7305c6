"""Renders Markdown of a model into a document: no raw HTML, no images, our own spacing and colours. GUI thread.

The document is dressed before it has a layout. That is a matter of safety, not only of speed: a layout would open every
file that the text names as an image, whatever `loadResource` answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import (
    QBrush,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)

from studio.views.chat.formula_object import FORMULA, formula_format, has_formula, register
from studio.views.chat.inline_formulas import FIRST_MARK, MOST_MARKS, cut_formulas
from studio.views.chat.kit import Kit
from studio.views.theme import Theme
from studio.views.words import tr

_FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub
    | QTextDocument.MarkdownFeature.MarkdownNoHTML
)
_LINE_HEIGHT = 1.5
_HEADING_PX = {1: 6, 2: 4, 3: 2}
"""How much larger than the text a heading is."""
GAP_PX = 10
"""Between paragraphs, and between the pieces of a message."""
_HEADING_GAP_PX = 18
_ITEM_GAP_PX = 4
_INDENT_PX = 24
_QUOTE_INDENT_PX = 16

OBJECT = "\ufffc"
"""What stands for a formula in a document."""

_Property = QTextFormat.Property


@dataclass(frozen=True, slots=True)
class Dress:
    """How a piece of prose differs from others."""

    is_first: bool = False
    """Of a message: there is nothing to keep a distance from."""
    is_quiet: bool = False
    """Thinking: in the colour of secondary text."""


def render(markdown: str, kit: Kit, parent: QObject, dress: Dress) -> QTextDocument:
    """A document of `parent` that shows `markdown`; between two of them a layout puts GAP_PX."""
    theme = kit.theme
    document = _empty_document(theme, parent)
    text, formulas = cut_formulas(markdown)
    document.setMarkdown(text, _FEATURES)
    document.setIndentWidth(_indent_px(document))
    _replace_images(document)
    if formulas:
        _replace_marks(document, formulas, kit)
    _dress_tables(document, theme)
    line_height = _line_height_percent(theme)
    block = document.begin()
    while block.isValid():
        _dress_block(block, theme, line_height, is_quiet=dress.is_quiet)
        block = block.next()
    _dress_first_block(document, is_first=dress.is_first)
    if formulas:
        register(document, kit)  # only now: it makes the layout
    return document


def render_plain(text: str, theme: Theme, parent: QObject) -> QTextDocument:
    """A document of `parent` that shows `text` as it is."""
    document = _empty_document(theme, parent)
    document.setPlainText(text)
    form = QTextBlockFormat()
    _set_line_height(form, _line_height_percent(theme))
    cursor = QTextCursor(document)
    cursor.select(QTextCursor.SelectionType.Document)
    cursor.mergeBlockFormat(form)
    return document


def is_quote(block: QTextBlock) -> bool:
    return block.blockFormat().hasProperty(_Property.BlockQuoteLevel)


def _empty_document(theme: Theme, parent: QObject) -> QTextDocument:
    document = QTextDocument(parent)
    document.setUndoRedoEnabled(False)
    document.setDocumentMargin(0)
    document.setDefaultFont(theme.font(theme.text_px))
    return document


def _indent_px(document: QTextDocument) -> float:
    """As much as the widest number of a list needs: Qt puts it, right-aligned, before the text of its item."""
    metrics = QFontMetricsF(document.defaultFont())
    widest_px, seen, block = 0.0, set(), document.begin()
    while block.isValid():
        items = block.textList()
        if items is not None and items.objectIndex() not in seen:
            seen.add(items.objectIndex())
            number = items.itemText(items.item(items.count() - 1))
            widest_px = max(widest_px, metrics.horizontalAdvance(f" {number} "))
        block = block.next()
    return max(_INDENT_PX, widest_px)


def _line_height_percent(theme: Theme) -> float:
    font = theme.font(theme.text_px)
    return 100 * _LINE_HEIGHT * theme.text_px / QFontMetricsF(font).lineSpacing()


def _set_line_height(form: QTextBlockFormat, percent: float) -> None:
    form.setLineHeight(percent, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)


def _set_line_distance(form: QTextBlockFormat, theme: Theme) -> None:
    """The same distance between lines of words; a line with a tall formula is only higher by what it needs."""
    least_px = _LINE_HEIGHT * theme.text_px
    form.setLineHeight(least_px, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)


def _fragments(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    """(start, length, format) of the pieces of a block; taken at once, because changing one ends the iteration."""
    found = []
    place = block.begin()
    while not place.atEnd():
        fragment = place.fragment()
        found.append((fragment.position(), fragment.length(), fragment.charFormat()))
        place += 1
    return found


def _replace_images(document: QTextDocument) -> None:
    """Put an image's description in its place; nothing that a model names is ever opened."""
    images = []
    block = document.begin()
    while block.isValid():
        images += [piece for piece in _fragments(block) if piece[2].isImageFormat()]
        block = block.next()
    for start, length, form in reversed(images):
        alt = str(form.property(_Property.ImageAltText) or "")
        cursor = QTextCursor(document)
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        words = tr("[image: {description}]").format(description=alt) if alt else tr("[image]")
        cursor.insertText(words, QTextCharFormat())


def _replace_marks(document: QTextDocument, formulas: list[str], kit: Kit) -> None:
    """Put the formulas where their marks are; the source of those that cannot be drawn, or not yet."""
    cursor = QTextCursor(document)
    for place in reversed(range(document.characterCount() - 1)):
        number = ord(document.characterAt(place)) - FIRST_MARK
        if not 0 <= number < min(len(formulas), MOST_MARKS):
            continue
        cursor.setPosition(place)
        cursor.setPosition(place + 1, QTextCursor.MoveMode.KeepAnchor)
        form = formula_format(formulas[number], kit, cursor.charFormat())
        if form is not None:
            cursor.insertText(OBJECT, form)
        else:
            form = cursor.charFormat()
            form.setFontFixedPitch(True)
            cursor.insertText(formulas[number], form)


def _dress_block(block: QTextBlock, theme: Theme, line_height: float, *, is_quiet: bool) -> None:
    form = block.blockFormat()
    quote_level = form.intProperty(_Property.BlockQuoteLevel)
    form.setTopMargin(_gap_above(block))
    form.setBottomMargin(0)
    if quote_level:
        form.setLeftMargin(_QUOTE_INDENT_PX * quote_level)
        form.setRightMargin(0)
    if form.hasProperty(_Property.BlockCodeFence) or form.nonBreakableLines():
        form.setBackground(QBrush(theme.colors.code))
    if form.hasProperty(_Property.BlockTrailingHorizontalRulerWidth):
        form.setBackground(QBrush(theme.colors.border))
    form.setNonBreakableLines(False)
    if block.textList() is None:
        form.clearProperty(_Property.BlockMarker)  # Qt lets a task's box run on into what follows
    if _is_filler(block):
        form.setTopMargin(0)
        form.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    elif has_formula(block) and QTextCursor(block).currentTable() is None:
        _set_line_distance(form, theme)
    else:
        _set_line_height(form, line_height)
    QTextCursor(block).setBlockFormat(form)
    is_quiet = is_quiet or bool(quote_level)
    for start, length, piece in _fragments(block):
        if not _dress_piece(piece, theme, heading_level=form.headingLevel(), is_quiet=is_quiet):
            continue
        cursor = QTextCursor(block)
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.setCharFormat(piece)


def _is_filler(block: QTextBlock) -> bool:
    """An empty line that Qt puts before or after a table, and that nobody wrote."""
    is_rule = block.blockFormat().hasProperty(_Property.BlockTrailingHorizontalRulerWidth)
    return not (block.text() or is_rule or QTextCursor(block).currentTable())


def _gap_above(block: QTextBlock) -> int:
    if QTextCursor(block).currentTable() is not None:
        return 0
    if block.blockFormat().headingLevel():
        return _HEADING_GAP_PX
    items = block.textList()
    if items is None or (items.itemNumber(block) == 0 and items.format().indent() == 1):
        return GAP_PX
    return _ITEM_GAP_PX


def _dress_first_block(document: QTextDocument, *, is_first: bool) -> None:
    """The layout makes the gap above a document: leave only what a heading wants beyond it."""
    form = document.begin().blockFormat()
    if form.headingLevel() and not is_first:
        frame = document.rootFrame().frameFormat()
        frame.setTopMargin(_HEADING_GAP_PX - GAP_PX)
        document.rootFrame().setFrameFormat(frame)
    form.setTopMargin(0)
    QTextCursor(document.begin()).setBlockFormat(form)


def _dress_piece(
    piece: QTextCharFormat, theme: Theme, *, heading_level: int, is_quiet: bool
) -> bool:
    """Change a format where it has to be another one; whether it had to."""
    if heading_level:
        piece.clearProperty(_Property.FontSizeAdjustment)
        larger_px = _HEADING_PX.get(heading_level, 0)
        piece.setProperty(_Property.FontPixelSize, theme.text_px + larger_px)
        piece.setFontWeight(theme.font(theme.text_px, is_bold=True).weight())
    if piece.objectType() == FORMULA:
        return bool(heading_level)
    if piece.fontFixedPitch():
        piece.setFontFamilies(theme.code_font().families())
        piece.setProperty(_Property.FontPixelSize, theme.ui_px)
        piece.setBackground(QBrush(theme.colors.bubble))
    elif piece.isAnchor():
        piece.setForeground(QBrush(theme.colors.accent))
        piece.setFontUnderline(True)
    elif is_quiet:
        piece.setForeground(QBrush(theme.colors.secondary))
    else:
        return bool(heading_level)
    return True


def _dress_tables(document: QTextDocument, theme: Theme) -> None:
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            is_at_start = _is_filler(document.begin()) and frame.firstPosition() <= 2
            _dress_table(frame, theme, gap=0 if is_at_start else GAP_PX)


def _dress_table(table: QTextTable, theme: Theme, *, gap: int) -> None:
    form = table.format().toTableFormat()
    form.setBorder(1)
    form.setBorderBrush(QBrush(theme.colors.border))
    form.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    form.setBorderCollapse(True)
    form.setCellPadding(6)
    form.setCellSpacing(0)
    form.setTopMargin(gap)
    form.setWidth(QTextLength())
    table.setFormat(form)
    corner = table.cellAt(0, 0)
    cursor = corner.firstCursorPosition()
    if cursor.block().text() == "" and cursor.block() != corner.lastCursorPosition().block():
        cursor.deleteChar()  # Qt begins a table that follows a quote with an empty line
    bold = QTextCharFormat()
    bold.setFontWeight(theme.font(theme.text_px, is_bold=True).weight())
    cursor = corner.firstCursorPosition()
    cursor.setPosition(corner.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
    cursor.mergeCharFormat(bold)
