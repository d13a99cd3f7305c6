"""What a start of Layby is asked to do beside opening its window, also when it hands that to one that is open already.

Plain values; any thread, no Qt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

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

    errand_id: str = field(default_factory=lambda: uuid4().hex, compare=False)
    """The same each time that it is handed over: who hears no answer in time tries again."""

    def to_bytes(self) -> bytes:
        """As one line."""
        files = [str(path) for path in self.files]
        data = {"text": self.text, "files": files, "id": self.errand_id}
        return json.dumps(data).encode() + b"\n"

    @classmethod
    def from_bytes(cls, line: bytes) -> Errand | None:
        """The errand in a line; None if it is none."""
        try:
            data = json.loads(line)
            text, files, errand_id = data["text"], data["files"], data["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(text, str) or not isinstance(errand_id, str):
            return None
        if not isinstance(files, list) or len(files) > _MOST_FILES:
            return None
        if not all(isinstance(one, str) for one in files):
            return None
        paths = tuple(Path(one) for one in files)
        if not all(one.is_absolute() for one in paths):
            return None
        return cls(text=text, files=paths, errand_id=errand_id)
