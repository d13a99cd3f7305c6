"""The chat history on disk (SQLite): asynchronous methods, all SQL in one worker thread of its own. No Qt."""

from __future__ import annotations

from pathlib import Path


class HistoryStore:
    """Only one process may have a history open (StoreBusy)."""

    def __init__(self, path: Path) -> None:
        raise NotImplementedError
