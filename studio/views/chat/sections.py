"""The rows of a transcript, without a widget: which there are, how high, and where. Pure; must not import Qt.

A section is a message. It is cut into rows only when somebody comes near it; until then, and until a row has been laid
out, its height is a guess from the length of its text. A row that has ended never changes its kind or its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from studio.models.chat import Message, Role
from studio.views.chat.markdown_blocks import Block, BlockKind
from studio.views.chat.offsets import Offsets
from studio.views.chat.reply_blocks import ReplySplitter

GAP_PX = 10
"""Between the rows of a message."""
_REPLY_GAP_PX = 20
_PROMPT_GAP_PX = 4
"""Below a prompt's foot, which is empty most of the time."""
_ITEM_GAP_PX = 4
_LINE_PX = 21
_CHAR_PX = 7
_FOOT_PX = 28
_EDITOR_PX = 120
_TOOL_PX = 84
_PROMPT_CHUNK_CHARS = 4000

View = TypeVar("View")


class RowKind(Enum):
    """What draws a row."""

    BLOCK = "block"
    FILES = "files"
    """What went with a prompt."""
    PROMPT = "prompt"
    EDITOR = "editor"
    """A prompt that is being changed."""
    TOOL = "tool"
    """A call of a tool."""
    FOOT = "foot"
    """How the message stands and what can be done with it."""


@dataclass(slots=True, eq=False)
class Row(Generic[View]):
    """`top` counts from the top of the section."""

    kind: RowKind
    block: Block
    height: int = 0
    top: int = 0
    is_measured: bool = False
    is_hidden: bool = False
    """Thinking that is folded."""
    view: View | None = None
    shown_kind: BlockKind | None = None
    """Of the block, when `view` was made."""
    call: int = 0
    """Of TOOL: which of the message's calls."""

    @property
    def bottom(self) -> int:
        return self.top + self.height


class Section(Generic[View]):
    """One message as rows."""

    def __init__(self, message: Message, width: int, offsets: Offsets) -> None:
        self.message = message
        self.index = 0
        """Its place among the sections."""
        self._offsets = offsets
        self.rows: list[Row[View]] = []
        self.height = 0
        self.is_split = False
        self.is_open = message.status.is_alive
        """Whether its thinking is to be seen."""
        self.is_open_by_hand = False
        """The reader has said so: it stays as it is."""
        self.is_edited = False
        self.num_parsed = 0
        """Blocks that were cut again because of new text, for the tests and the bench."""
        self.gone: list[Row[View]] = []
        """Rows that are no more, for the owner of their views to see to."""
        self._splitter = ReplySplitter()
        self._num_settled = 0
        """Blocks that will not change any more."""
        self.guess(width)

    @property
    def top(self) -> int:
        """Where it begins, as far as all above it has been settled."""
        return self._offsets.start(self.index)

    @property
    def is_reply(self) -> bool:
        return self.message.role is Role.ASSISTANT

    @property
    def gap_below(self) -> int:
        return _REPLY_GAP_PX if self.is_reply or self.is_edited else _PROMPT_GAP_PX

    @property
    def is_thinking(self) -> bool:
        """Whether its thinking has not ended."""
        blocks = self._splitter.blocks
        return bool(blocks) and blocks[0].kind is BlockKind.THOUGHT and not blocks[0].is_finished

    @property
    def has_answer(self) -> bool:
        """Whether it has thought and goes on, or ended, with something else."""
        blocks = self._splitter.blocks
        return bool(blocks) and blocks[0].kind is BlockKind.THOUGHT and blocks[0].is_finished

    def guess(self, width: int) -> None:
        """Guess heights for a width; rows have to be measured again."""
        if not self.is_split:
            tools = (_TOOL_PX + GAP_PX) * len(self.message.calls)
            self.height = _guess(self.message.text, width) + tools + _FOOT_PX + GAP_PX
            return
        for row in self.rows:
            row.is_measured = False
        self.place()

    def split(self, width: int) -> None:
        """Have rows; nothing if it has."""
        if self.is_split:
            return
        self.is_split = True
        if self.is_edited:
            self.rows = [Row(RowKind.EDITOR, Block(BlockKind.PROSE), _EDITOR_PX)]
            self.place()
        elif self.is_reply:
            self.rows = [Row(RowKind.FOOT, Block(BlockKind.PROSE, is_finished=True), _FOOT_PX)]
            self.update(width)
        else:
            self._split_prompt(width)
            self.place()

    def update(self, width: int) -> list[Row[View]]:
        """Take the text that has come; the rows that changed, the new ones among them. The others are as they were."""
        if not self.is_split or not self.is_reply or self.is_edited:
            return []
        message, splitter = self.message, self._splitter
        has_grown = len(message.text) > splitter.num_chars
        if len(message.text) < splitter.num_chars or (splitter.is_over and has_grown):
            self._splitter = splitter = ReplySplitter()  # it was interrupted, and goes on
            self._num_settled = 0
        if len(message.text) > splitter.num_chars:
            splitter.feed(message.text[splitter.num_chars :])
        if not message.status.is_alive:
            splitter.finish()
        return self._match(splitter.blocks, width)

    def place(self) -> None:
        """Set the rows below one another."""
        y = 0
        for index, row in enumerate(self.rows):
            if row.is_hidden:
                row.top = y
                continue
            row.top = y + (_gap_above(row) if index else 0)
            y = row.top + row.height
        self.height = y

    def fold(self) -> bool:
        """Hide or show the thinking as `is_open` says; whether that changed anything."""
        is_changed = False
        for row in self.rows:
            is_hidden = row.block.is_thought and not self.is_open
            is_changed = is_changed or is_hidden is not row.is_hidden
            row.is_hidden = is_hidden
        if is_changed:
            self.place()
        return is_changed

    def edit(self, *, is_edited: bool, width: int) -> None:
        """Put an editor in the place of a message, or the message back."""
        self.gone += self.rows
        self.is_edited, self.is_split = is_edited, False
        self._splitter, self._num_settled = ReplySplitter(), 0
        self.split(width)

    def row_at(self, start: int) -> Row[View] | None:
        """The row that shows this place of the message's text."""
        found = None
        for row in self.rows:
            if (
                row.kind in (RowKind.BLOCK, RowKind.PROMPT)
                and row.block.kind is not BlockKind.THOUGHT
            ):
                if row.block.start > start:
                    break
                found = row
        return found

    def _match(self, blocks: Sequence[Block], width: int) -> list[Row[View]]:
        """Have one row for each block and the foot below them; rows are kept where they show the same."""
        foot = self.rows[-1]
        rows = [row for row in self.rows[:-1] if row.kind is RowKind.BLOCK]
        if rows and (not blocks or rows[0].block is not blocks[0]):
            self._num_settled = 0
            kept = _kept(rows, blocks)
            self.gone += rows[len(kept) :]
            rows = kept
        self.gone += rows[len(blocks) :]
        del rows[len(blocks) :]
        changed = []
        for index in range(self._num_settled, len(blocks)):
            if index == len(rows):
                rows.append(Row(RowKind.BLOCK, blocks[index]))
            rows[index].block = blocks[index]
            rows[index].is_measured = False
            if rows[index].height == 0:
                rows[index].height = _guess_block(blocks[index], width)
            rows[index].is_hidden = blocks[index].is_thought and not self.is_open
            changed.append(rows[index])
        self.num_parsed += len(changed)
        while self._num_settled < len(blocks) and blocks[self._num_settled].is_finished:
            self._num_settled += 1
        tools = self._tool_rows()
        self.rows = [*rows, *tools, foot]
        self.place()
        return [*changed, *tools]

    def _tool_rows(self) -> list[Row[View]]:
        """A row for each call of the message; those there are stay."""
        rows = [row for row in self.rows if row.kind is RowKind.TOOL]
        self.gone += rows[len(self.message.calls) :]
        del rows[len(self.message.calls) :]
        for call in range(len(rows), len(self.message.calls)):
            block = Block(BlockKind.PROSE, is_finished=True)
            rows.append(Row(RowKind.TOOL, block, _TOOL_PX, call=call))
        for row in rows:
            row.is_measured = False
        return rows

    def _split_prompt(self, width: int) -> None:
        rows = [
            Row[View](RowKind.PROMPT, block, _guess_block(block, width))
            for block in _chunks(self.message.text)
        ]
        if self.message.attachments:
            files = Row[View](RowKind.FILES, Block(BlockKind.PROSE, is_finished=True), _FOOT_PX)
            rows = [files, *rows] if self.message.text else [files]
        foot = Row[View](RowKind.FOOT, Block(BlockKind.PROSE, is_finished=True), _FOOT_PX)
        self.rows = [*rows, foot]


def _kept(rows: list[Row[View]], blocks: Sequence[Block]) -> list[Row[View]]:
    """Those first rows that show what the blocks say; the others make room."""
    kept = []
    for row, block in zip(rows, blocks, strict=False):
        if (row.block.kind, row.block.language) != (block.kind, block.language):
            break
        kept.append(row)
    return kept


def _chunks(text: str) -> list[Block]:
    """A prompt in pieces that can be laid out each in no time, cut at lines where there are any."""
    blocks, start = [], 0
    while len(text) - start > _PROMPT_CHUNK_CHARS:
        cut = text.rfind("\n", start + 1, start + _PROMPT_CHUNK_CHARS)
        end = cut + 1 if cut > 0 else start + _PROMPT_CHUNK_CHARS
        blocks.append(
            Block(
                BlockKind.PROSE,
                text[start:end].removesuffix("\n"),
                is_finished=True,
                goes_on=start > 0,
                start=start,
            )
        )
        start = end
    last = Block(BlockKind.PROSE, text[start:], is_finished=True, goes_on=start > 0, start=start)
    return [*blocks, last]


def _gap_above(row: Row[View]) -> int:
    if row.kind is RowKind.PROMPT:
        return 0  # one bubble
    if row.kind is RowKind.FOOT:
        return _ITEM_GAP_PX
    if row.block.is_thought and row.block.kind is BlockKind.PROSE:
        return 0  # beside one line
    return _ITEM_GAP_PX if row.block.goes_on else GAP_PX


def _guess(text: str, width: int) -> int:
    lines = text.count("\n") + len(text) * _CHAR_PX / max(width, 1)
    return round(lines * _LINE_PX) + _LINE_PX


def _guess_block(block: Block, width: int) -> int:
    return _guess(block.text, width) + (30 if block.kind is BlockKind.CODE else 0)
