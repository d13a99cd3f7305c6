"""Tool tips of texts that somebody else has written: plain, in lines that a screen has room for. GUI thread.

Of itself Qt takes what looks like HTML for that, and shows anything else on one line, however long. Must not import
services.
"""

from __future__ import annotations

import re
from html import escape

from PySide6.QtCore import QRect
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip, QWidget

from studio.views.words import shortened

_MOST_CHARS = 600
_LONG_WORD = re.compile(r"(\S{40})(?=\S)")
_BREAK = "\u200b"
"""Where a line may end, unseen."""


def show_tip(event: QHelpEvent, text: str, widget: QWidget, place: QRect | None = None) -> None:
    """Show a text, or nothing, for a widget or for a place in it."""
    QToolTip.showText(event.globalPos(), tip_of(text), widget, place or QRect())


def tip_of(text: str) -> str:
    """The text as what Qt shows as it is, in lines."""
    whole = "\n".join(shortened(line, _MOST_CHARS) for line in text.splitlines())
    if not whole:
        return ""
    broken = escape(_LONG_WORD.sub(rf"\1{_BREAK}", whole))
    return f'<p style="white-space: pre-wrap">{broken}</p>'
