"""How Markdown is cut into blocks: the same for every way the text may arrive."""

from __future__ import annotations

import random

import pytest

from studio.views.chat.markdown_blocks import (
    MAX_OPEN_CHARS,
    BlockKind,
    BlockSplitter,
    whole_parts,
)

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


def blocks_of(*deltas: str) -> list[tuple[BlockKind, str]]:
    splitter = BlockSplitter()
    for delta in deltas:
        splitter.feed(delta)
    splitter.finish()
    assert all(block.is_finished for block in splitter.blocks)
    return [(block.kind, block.text) for block in splitter.blocks]


def test_blocks_end_at_blank_lines_and_at_fences() -> None:
    assert blocks_of(SAMPLE) == [
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
    assert [block.language for block in whole_parts("```py title=x\na\n```\n~~~\nb\n~~~")] == [
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
    ]
    text = SAMPLE if seed == 0 else "".join(dice.choice(pieces) for _ in range(60))
    cuts = sorted(dice.randrange(len(text) + 1) for _ in range(20))
    deltas = [text[low:high] for low, high in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert blocks_of(*deltas) == blocks_of(text) == blocks_of(*text)


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


def test_whole_parts_keep_prose_between_code_together() -> None:
    parts = whole_parts("One.\n\nTwo.\n\n1. a\n\n2. b\n```\ncode\n```\nThree.\n\n\nFour.\n")
    assert [(part.kind, part.text) for part in parts] == [
        (BlockKind.PROSE, "One.\n\nTwo.\n\n1. a\n\n2. b"),
        (BlockKind.CODE, "code"),
        (BlockKind.PROSE, "Three.\n\n\nFour."),
    ]


def test_nothing_makes_no_parts() -> None:
    assert whole_parts("") == whole_parts(" \n\n") == []
