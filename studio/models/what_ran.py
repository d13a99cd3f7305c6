"""What ran when Layby was started again, and so runs once it has: one line of text from the old program to the new one.

Plain values; any thread, no Qt.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatRan:
    """Beside what every start brings back: the chats, and the window as it was closed."""

    model: str = ""
    """A path or a name in the library; empty: none was loaded."""
    has_server: bool = False
    chat_ids: tuple[int, ...] = ()
    """Chats that stood in windows of their own."""
    download_ids: tuple[str, ...] = ()
    """Downloads that were under way."""

    def to_text(self) -> str:
        """What `from_text` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> WhatRan:
        """Raises ValueError for a text that is none."""
        try:
            data = json.loads(text)
            return cls(
                model=str(data["model"]),
                has_server=bool(data["has_server"]),
                chat_ids=tuple(int(one) for one in data["chat_ids"]),
                download_ids=tuple(str(one) for one in data["download_ids"]),
            )
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{text[:80]!r} does not say what ran") from error
