"""Makes the widget of a row and keeps it showing what its block says. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from studio.views.chat.code_block import CodeBlock
from studio.views.chat.files_view import FilesView
from studio.views.chat.foot_view import FootView
from studio.views.chat.formula_view import FormulaView
from studio.views.chat.kit import Kit
from studio.views.chat.markdown_blocks import Block, BlockKind
from studio.views.chat.markdown_style import Dress
from studio.views.chat.message_editor import MessageEditor
from studio.views.chat.prompt_view import PromptView
from studio.views.chat.prose_view import ProseView
from studio.views.chat.quiet_prose import QuietProse
from studio.views.chat.sections import Row, RowKind, Section
from studio.views.chat.thought_head import ThoughtHead
from studio.views.chat.tool_view import ToolView
from studio.views.words import tr

RowView = (
    ProseView
    | QuietProse
    | CodeBlock
    | FormulaView
    | ThoughtHead
    | PromptView
    | FootView
    | FilesView
    | MessageEditor
    | ToolView
)


_MOST_SPARE = 48


class ViewStock:
    """Makes the widgets of rows, and takes those of prose back: dressing a new one takes longer than its text."""

    def __init__(self, kit: Kit, parent: QWidget) -> None:
        self._kit = kit
        self._parent = parent
        self._spare: list[ProseView] = []

    def take(self, section: Section[RowView], row: Row[RowView]) -> RowView:
        """A widget for a row, hidden, and empty until `show_block`."""
        kit, parent = self._kit, self._parent
        match row.kind:
            case RowKind.FOOT:
                return FootView(section.message, kit, parent)
            case RowKind.EDITOR:
                return MessageEditor(section.message, kit.theme, parent)
            case RowKind.TOOL:
                return ToolView(section.message, row.call, kit, parent)
            case RowKind.FILES:
                return FilesView(section.message.attachments, kit, parent)
            case RowKind.PROMPT:
                is_last = section.rows[-2] is row
                return PromptView(kit, parent, is_first=not row.block.goes_on, is_last=is_last)
            case RowKind.BLOCK:
                return self._block_view(row.block, is_first=section.rows[0] is row)

    def put_back(self, view: RowView) -> None:
        """The row of this widget is out of sight."""
        view.hide()
        if isinstance(view, ProseView) and len(self._spare) < _MOST_SPARE:
            view.forget()
            self._spare.append(view)
        else:
            view.deleteLater()

    def _block_view(self, block: Block, *, is_first: bool) -> RowView:
        kit, parent = self._kit, self._parent
        match block.kind:
            case BlockKind.CODE:
                return CodeBlock(block.language, kit, parent)
            case BlockKind.FORMULA:
                return FormulaView(kit, parent)
            case BlockKind.THOUGHT:
                return ThoughtHead(parent)
            case BlockKind.PROSE if block.is_thought:
                return QuietProse(kit, parent)
            case BlockKind.PROSE:
                view = self._spare.pop() if self._spare else ProseView(kit, parent)
                view.set_dress(Dress(is_first=is_first))
                view.setAccessibleName(tr("Reply"))
                return view


def show_block(view: RowView, block: Block) -> None:
    """Have a view of a block show its text; cheap where nothing has changed."""
    match view:
        case CodeBlock():
            view.set_text(block.text)
            if block.is_finished:
                view.finish()
        case FormulaView():
            view.set_latex(block.text, is_whole=block.is_finished)
        case PromptView():
            view.set_text(block.text)
        case ProseView() | QuietProse():
            view.set_markdown(block.text)
        case ToolView():
            view.refresh()
        case ThoughtHead() | FootView() | FilesView() | MessageEditor():
            pass
