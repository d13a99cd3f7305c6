"""Names, and other texts that stand on one line beside what is not theirs. Pure; any thread, no Qt."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no space
    "\u200b\ufeff"  # spaces without width
    "\u202a-\u202e\u2066-\u2069"  # what turns the order of all that follows on the line
    "\ufff9-\ufffb]"
)


def one_line(text: str) -> str:
    """The text with one space for each run of spaces and line breaks, and without what is not seen but acts.

    Such are controls, and the marks that have what follows them, on somebody else's account too, run the other way.
    Letters that are written from right to left are what they are; so are joined emojis.
    """
    if not text.isprintable():
        text = _UNSEEN.sub("", text)
    return " ".join(text.split())
