r"""Finds formulas among words: $x$, \(x\), $$x$$ and \[x\], but no prices and nothing in code. Pure.

Each is put out of Markdown's way by one character of a private use area, which comes out of the renderer as it went in.
"""

from __future__ import annotations

import re

FIRST_MARK = 0xE000
MOST_MARKS = 0x1800

_CODE_OR_FORMULA = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|\\\((?P<round>.+?)\\\)"
    r"|\\\[(?P<square>.+?)\\\]"
    r"|(?<![\\$])\$\$(?P<double>[^$]+?)\$\$"
    r"|(?<![\\$])\$(?P<single>[^\s$](?:[^$\n]*?[^\s\\$])?)\$(?![\d$])",
    re.DOTALL,
)

_GROUPS = ("round", "square", "double", "single")


def has_formulas(markdown: str) -> bool:
    """Whether there may be any; quick, and sometimes wrong in saying yes."""
    return "$" in markdown or "\\begin" in markdown or "\\(" in markdown or "\\[" in markdown


def cut_formulas(markdown: str) -> tuple[str, list[str]]:
    """The text with a mark for each formula, and their LaTeX in order."""
    if not has_formulas(markdown):
        return markdown, []
    if any(FIRST_MARK <= ord(char) < FIRST_MARK + MOST_MARKS for char in markdown):
        return (
            markdown,
            [],
        )  # it has such characters of its own: their meaning is not ours to change
    found: list[str] = []

    def mark(match: re.Match[str]) -> str:
        if match["code"] is not None or len(found) == MOST_MARKS:
            return match[0]
        found.append(next(part for name in _GROUPS if (part := match[name]) is not None).strip())
        return chr(FIRST_MARK + len(found) - 1)

    return _CODE_OR_FORMULA.sub(mark, markdown), found
