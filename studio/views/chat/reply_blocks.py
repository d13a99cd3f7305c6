"""A reply as blocks while it arrives: its thinking apart, the answer below it. Pure; must not import Qt."""

from __future__ import annotations

from studio.models.thoughts import ThoughtSplitter
from studio.views.chat.markdown_blocks import Block, BlockKind, BlockSplitter


class ReplySplitter:
    """A reply as blocks, its thinking apart: one THOUGHT block, then what was thought, then the answer."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.num_chars = 0
        """How much of the reply was fed."""
        self.is_over = False
        """Whether it was finished: no more may be fed."""
        self._thoughts = ThoughtSplitter()
        self._open: BlockSplitter | None = None
        self._is_open_thought = False
        self._has_turned = False
        self._num_before = 0
        """Blocks before those of the open splitter."""

    def feed(self, delta: str) -> None:
        """Add text. Blocks that have ended stay as they are, unless all of it turns out to have been thinking."""
        self.num_chars += len(delta)
        for piece in self._thoughts.feed(delta):
            is_turn = self._thoughts.was_thought_all_along and not self._has_turned
            if is_turn and not piece.is_thought:
                self._make_all_thought()
            self._take(piece.text, piece.start, is_thought=piece.is_thought and not is_turn)
        if self._thoughts.was_thought_all_along and not self._has_turned:
            self._make_all_thought()
        if self._thoughts.is_thinking and not self.blocks:
            self._open_splitter(self._thoughts.position, is_thought=True)

    def finish(self) -> None:
        """Nothing more comes."""
        if self.is_over:
            return
        self.is_over = True
        for piece in self._thoughts.finish():
            self._take(piece.text, piece.start, is_thought=piece.is_thought)
        self._end_open()

    def _take(self, text: str, start: int, *, is_thought: bool) -> None:
        if self._open is None or is_thought is not self._is_open_thought:
            self._end_open()
            self._open_splitter(start, is_thought=is_thought)
        assert self._open is not None
        self._open.feed(text)
        self.blocks[self._num_before :] = self._open.blocks

    def _open_splitter(self, start: int, *, is_thought: bool) -> None:
        if is_thought:
            self.blocks.append(Block(BlockKind.THOUGHT))
        self._open = BlockSplitter(is_thought=is_thought, start=start)
        self._is_open_thought = is_thought
        self._num_before = len(self.blocks)

    def _end_open(self) -> None:
        if self._open is None:
            return
        self._open.finish()
        self.blocks[self._num_before :] = self._open.blocks
        if self._is_open_thought:
            self.blocks[self._num_before - 1].is_finished = True
        self._open = None

    def _make_all_thought(self) -> None:
        """The tag that ends the thinking came, and none had opened it."""
        self._has_turned = True
        self._end_open()
        for block in self.blocks:
            block.is_thought = True
        self.blocks.insert(0, Block(BlockKind.THOUGHT, is_finished=True))
