"""A message's Markdown: while it streams, a column of blocks of which only the last changes; then prose and code parts.

GUI thread. Widgets are kept where the piece they show is still there, so nothing flickers. Must not import services.
"""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from studio.views.chat.code_block import CodeBlock
from studio.views.chat.markdown_blocks import Block, BlockKind, BlockSplitter, whole_parts
from studio.views.chat.markdown_style import GAP_PX
from studio.views.chat.prose_view import ProseView
from studio.views.theme import Theme
from studio.views.words import tr


class MarkdownView(QWidget):
    """`stream` the text so far whenever there is more of it, then `finish`; or `finish` alone for a whole text."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._splitter = BlockSplitter()
        self._num_fed = 0
        self._num_settled = 0
        """How many pieces will not change any more."""
        self.pieces: list[ProseView | CodeBlock] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(GAP_PX)

    def stream(self, text: str) -> None:
        """Show a text that may still grow. Costs what is new, and the unfinished block."""
        if len(text) == self._num_fed:
            return
        if len(text) < self._num_fed:
            self.start_again()
        self._splitter.feed(text[self._num_fed :])
        self._num_fed = len(text)
        blocks = self._splitter.blocks
        for index in range(self._num_settled, len(blocks)):
            self._show(index, blocks[index])
        while self._num_settled < len(blocks) and blocks[self._num_settled].is_finished:
            self._num_settled += 1
        self.updateGeometry()  # at once: layouts tell layouts around them only with the next event

    def finish(self, text: str) -> None:
        """Show a text that is whole: one piece for each run of prose and each piece of code."""
        parts = whole_parts(text)
        for index, part in enumerate(parts):
            self._show(index, part)
        for piece in self.pieces[len(parts) :]:
            self._remove(piece)
        del self.pieces[len(parts) :]
        self.updateGeometry()

    def start_again(self) -> None:
        """Forget what was shown: a text that was whole grows on, or another one takes its place."""
        for piece in self.pieces:
            self._remove(piece)
        self.pieces.clear()
        self._splitter = BlockSplitter()
        self._num_fed = self._num_settled = 0

    def _show(self, index: int, block: Block) -> None:
        if index < len(self.pieces) and not _fits(self.pieces[index], block):
            self._remove(self.pieces[index])
            self._insert(index, block, replace=True)
        elif index == len(self.pieces):
            self._insert(index, block, replace=False)
        piece = self.pieces[index]
        if isinstance(piece, CodeBlock):
            piece.set_text(block.text)
        else:
            piece.set_markdown(block.text)

    def _insert(self, index: int, block: Block, *, replace: bool) -> None:
        piece: ProseView | CodeBlock
        if block.kind is BlockKind.CODE:
            piece = CodeBlock(block.language, self._theme, self)
        else:
            piece = ProseView(self._theme, self, is_first=index == 0)
            piece.setAccessibleName(tr("Reply"))
        self.pieces[index : index + replace] = [piece]
        self._layout.insertWidget(index, piece)
        piece.show()  # at once: a layout gives no height to what is not shown yet

    def _remove(self, piece: QWidget) -> None:
        self._layout.removeWidget(piece)
        piece.hide()
        piece.deleteLater()


def _fits(piece: ProseView | CodeBlock, block: Block) -> bool:
    if isinstance(piece, CodeBlock):
        return block.kind is BlockKind.CODE and piece.language == block.language
    return block.kind is BlockKind.PROSE
