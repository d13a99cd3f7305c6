"""Files that go with a message: what was read of them, and what it costs.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AttachmentKind(Enum):
    """What kind of file it was."""

    TEXT = "text"
    CODE = "code"
    PDF = "pdf"
    DOCX = "docx"
    IMAGE = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """One file. The history holds all that is needed of it: the original may move or go."""

    name: str
    kind: AttachmentKind
    text: str = ""
    """What the model is given; empty for an image."""
    num_tokens: int | None = None
    """Of `text`, by the model that was loaded; None: not counted."""
    data: bytes = b""
    """An image as its file has it; empty for all others."""
    path: str = ""
    """Where it came from, for the user to know."""
    attachment_id: int = 0
    """Of the history; 0 until it is stored."""
