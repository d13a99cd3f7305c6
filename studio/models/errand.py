"""What a start of Layby is asked to do beside opening its window, also when it hands that to one that is open already.

Plain values; any thread, no Qt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 1 << 20
"""Of an errand on its way; what is longer is no errand."""
_MOST_FILES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Nothing but coming to the front, if both are empty."""

    text: str = ""
    """For a new chat; it is written into the field and not sent."""
    files: tuple[Path, ...] = ()
    """Absolute paths: models, chats to import, or files to attach."""

    def to_bytes(self) -> bytes:
        """As one line."""
        data = {"text": self.text, "files": [str(path) for path in self.files]}
        return json.dumps(data).encode() + b"\n"

    @classmethod
    def from_bytes(cls, line: bytes) -> Errand | None:
        """The errand in a line; None if it is none."""
        try:
            data = json.loads(line)
            text, files = data["text"], data["files"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(text, str) or not isinstance(files, list):
            return None
        if len(files) > _MOST_FILES or not all(isinstance(one, str) for one in files):
            return None
        paths = tuple(Path(one) for one in files)
        return cls(text=text, files=paths) if all(one.is_absolute() for one in paths) else None
