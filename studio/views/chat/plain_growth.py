"""Whether Markdown that has grown may be shown by adding words at its end, without being rendered again. Pure.

Most of what a model writes is words inside a paragraph. They change nothing of what stands before them, as long as
neither they nor the place they join on to can be part of any Markdown. Must not import Qt.
"""

from __future__ import annotations

import re

_WORDS = re.compile(r"[\w ,.;'\"()?%/\u2010-\u201f-]*\Z")
_SPECIAL = re.compile(r"[`*_~\[\]<>!#|$\\&^=+:@\n\t]")
_DELICATE_TAIL = re.compile(
    r"(?:^|\n)[ \t>]*(?:[-+*]|\d{1,9}[.)]?|#{1,6}|=+|-+)?[ \t]*[^\s]{0,2}\Z"
)
_LINK_TAIL = re.compile(r"(?:www\.|[:@/&])\S*\Z")


def plain_growth(old: str, new: str) -> str | None:
    """The words to add to what is shown of `old` to show `new`; None if it has to be rendered."""
    if not old or not new.startswith(old) or "|" in old:
        return None
    shown, grown = old.rstrip(" "), new.rstrip(" ")
    added = grown[len(shown) :]
    if not added:
        return ""
    if _SPECIAL.search(added) or not _WORDS.match(added.lstrip(" ")):
        return None
    if not shown or not (shown[-1].isalnum() or shown[-1] in ",.;?)\"'\u2019\u201d"):
        return None
    line = shown[shown.rfind("\n") + 1 :]
    if _DELICATE_TAIL.search("\n" + line) or _LINK_TAIL.search(line) or "www." in added:
        return None
    return None if line.lstrip().startswith(("=", "-" * 3)) else added
