"""How Markdown is cut into blocks: the same for every way the text may arrive."""

from __future__ import annotations

import random

import pytest

from studio.views.chat.markdown_blocks import (
    MAX_LIST_CHARS,
    MAX_OPEN_CHARS,
    Block,
    BlockKind,
    BlockSplitter,
)
from studio.views.chat.reply_blocks import ReplySplitter

SAMPLE = """# Title

A paragraph
on two lines.

1. First:
   ```python
   def f():

       return 1
   ```
2. Second

   still second

- loose

- list

After the list `code`.

~~~
``` not an end
~~~
~~ struck ~~ and more

```
never closed"""


def blocks_of(text: str) -> list[Block]:
    splitter = ReplySplitter()
    splitter.feed(text)
    splitter.finish()
    return splitter.blocks


def cut(*deltas: str) -> list[tuple[BlockKind, str]]:
    splitter = BlockSplitter()
    for delta in deltas:
        splitter.feed(delta)
    splitter.finish()
    assert all(block.is_finished for block in splitter.blocks)
    return [(block.kind, block.text) for block in splitter.blocks]


def test_blocks_end_at_blank_lines_and_at_fences() -> None:
    assert cut(SAMPLE) == [
        (BlockKind.PROSE, "# Title"),
        (BlockKind.PROSE, "A paragraph\non two lines."),
        (BlockKind.PROSE, "1. First:"),
        (BlockKind.CODE, "def f():\n\n    return 1"),
        (BlockKind.PROSE, "2. Second\n\n   still second\n\n- loose\n\n- list"),
        (BlockKind.PROSE, "After the list `code`."),
        (BlockKind.CODE, "``` not an end"),
        (BlockKind.PROSE, "~~ struck ~~ and more"),
        (BlockKind.CODE, "never closed"),
    ]


def test_the_language_of_a_fence_is_kept() -> None:
    assert [block.language for block in blocks_of("```py title=x\na\n```\n~~~\nb\n~~~")] == [
        "py",
        "",
    ]


@pytest.mark.parametrize("seed", range(40))
def test_blocks_do_not_depend_on_how_the_text_arrives(seed: int) -> None:
    dice = random.Random(seed)
    pieces = [
        "a",
        "word ",
        "\n",
        "\n\n",
        "```",
        "``",
        "~~~",
        "- ",
        "1. ",
        "   ",
        "# ",
        "| a |",
        "`x`",
        "\r\n",
        "$$",
        "\\[",
        "\\]",
        "\\begin{align}",
        "\\end{align}",
        "$",
        ".",
    ]
    text = SAMPLE if seed == 0 else "".join(dice.choice(pieces) for _ in range(60))
    cuts = sorted(dice.randrange(len(text) + 1) for _ in range(20))
    deltas = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert cut(*deltas) == cut(text) == cut(*text)


@pytest.mark.parametrize("seed", range(20))
def test_finished_blocks_never_change_and_code_only_grows(seed: int) -> None:
    dice = random.Random(seed)
    splitter = BlockSplitter()
    seen: list[str] = []
    for _ in range(200):
        splitter.feed(dice.choice(["x", " y", "\n", "\n\n", "```\n", "`", "~~", "- i\n", "  "]))
        texts = [block.text for block in splitter.blocks]
        for index, (before, now) in enumerate(zip(seen, texts, strict=False)):
            if index < len(seen) - 1:
                assert now == before
            elif splitter.blocks[index].kind is BlockKind.CODE:
                assert now.startswith(before)
        seen = texts


def test_a_fence_is_not_shown_before_it_is_known_to_be_one() -> None:
    splitter = BlockSplitter()
    for delta in ("Look:\n", "``", "`py", "thon"):
        splitter.feed(delta)
        assert [block.text for block in splitter.blocks] == ["Look:"]
    splitter.feed("\nx = 1\n``")
    assert splitter.blocks[-1].text == "x = 1"


@pytest.mark.parametrize("text", ["word " * 4000, "x" * 20_000, "line\n" * 4000])
def test_an_open_block_stays_small(text: str) -> None:
    splitter = BlockSplitter()
    for start in range(0, len(text), 50):
        splitter.feed(text[start : start + 50])
        assert len(splitter.blocks[-1].text) <= MAX_OPEN_CHARS + 50
    splitter.finish()
    shown = "".join(block.text for block in splitter.blocks)
    assert shown.replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")


FORMULAS = r"""Let
$$
x^2
$$
\[ y \]
and $$z$$ among words.
\begin{align}
a &= b
\end{align}
1. item
   \[ w \]
$$ has no end

Prose."""


def test_formulas_of_their_own_lines_are_blocks() -> None:
    kind = BlockKind
    assert cut(FORMULAS) == [
        (kind.PROSE, "Let"),
        (kind.FORMULA, "x^2"),
        (kind.FORMULA, " y "),
        (kind.PROSE, "and $$z$$ among words."),
        (kind.FORMULA, "\\begin{align}\na &= b\n\\end{align}"),
        (kind.PROSE, "1. item"),
        (kind.FORMULA, " w "),
        (kind.PROSE, "$$\n has no end"),
        (kind.PROSE, "Prose."),
    ]


def test_a_long_list_is_cut_before_an_item() -> None:
    text = "".join(f"{number}. an item with some words in it\n" for number in range(1, 100))
    blocks = blocks_of(text)
    assert len(blocks) > 2
    assert all(len(block.text) < MAX_LIST_CHARS + 100 for block in blocks)
    assert [block.goes_on for block in blocks] == [False] + [True] * (len(blocks) - 1)
    assert "\n".join(block.text for block in blocks) == text.rstrip("\n")


def test_every_block_knows_where_it_begins() -> None:
    text = "<think>\nHm.\n\nWell.\n</think>\n" + SAMPLE
    for block in blocks_of(text):
        if block.kind is BlockKind.PROSE:
            assert text[block.start :].lstrip("\n").startswith(block.text.split("\n")[0])


def test_blocks_say_in_markdown_what_they_are() -> None:
    for block in blocks_of(SAMPLE + "\n```\n\n" + FORMULAS):
        again = blocks_of(block.markdown)
        assert [(b.kind, b.text.split()) for b in again] == [(block.kind, block.text.split())]


def test_thinking_has_a_head_and_blocks_of_its_own() -> None:
    kinds = [
        (block.kind, block.is_thought, block.text)
        for block in blocks_of("<think>\nOne.\n\n```py\nx\n```\n</think>\n\nTwo.")
    ]
    assert kinds == [
        (BlockKind.THOUGHT, False, ""),
        (BlockKind.PROSE, True, "One."),
        (BlockKind.CODE, True, "x"),
        (BlockKind.PROSE, False, "Two."),
    ]


def test_thinking_that_nothing_opened_is_found_when_it_ends() -> None:
    splitter = ReplySplitter()
    splitter.feed("One.\n\nTwo.\n")
    assert [block.is_thought for block in splitter.blocks] == [False, False]
    splitter.feed("</think>\n\nThree.")
    splitter.finish()
    assert [(block.kind, block.is_thought) for block in splitter.blocks] == [
        (BlockKind.THOUGHT, False),
        (BlockKind.PROSE, True),
        (BlockKind.PROSE, True),
        (BlockKind.PROSE, False),
    ]


def test_nothing_makes_no_blocks() -> None:
    assert blocks_of("") == blocks_of(" \n\n") == []
