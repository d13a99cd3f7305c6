"""Full-text search in the messages on disk. Asynchronous methods over the history's file. No Qt.

Words are found by SQLite's FTS5 (https://www.sqlite.org/fts5.html), each by its beginning (a single letter only as a
word), without regard to case and accents. Scripts that do not part words by spaces are searched letter by letter.
"""

from __future__ import annotations

import re
import sqlite3

from studio.models.one_line import one_line
from studio.models.search_hit import Snippet, TextHit
from studio.services.history_file import HistoryFile

MAX_HITS = 5_000
"""Chats: what is done with all that a search lists is meant of all that have the words."""
_SNIPPET_TOKENS = 14
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Private-use characters around what was found; none of them stays in a snippet."""
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana, Han, Hangul."""
_AROUND_CHARS = 40
_LISTED = "JOIN chats USING (chat_id) WHERE chats.deleted_s IS NULL"
_NEWEST = "GROUP BY chat_id ORDER BY max(messages.message_id) DESC LIMIT ?"
_BY_WORDS = (
    "SELECT chat_id, max(messages.message_id) FROM message_words "
    f"JOIN messages ON messages.message_id = message_words.rowid {_LISTED} AND message_words MATCH ? {_NEWEST}"
)
_SNIPPETS = (
    "SELECT rowid, snippet(message_words, 0, ?, ?, '…', ?) FROM message_words "
    "WHERE message_words MATCH ? AND +rowid IN ({marks})"
)
"""In one walk over all that match; without the plus the index would be asked anew for each id."""
_BY_LETTERS = f"SELECT chat_id, max(messages.message_id), text FROM messages {_LISTED} AND {{conditions}} {_NEWEST}"


class HistorySearch:
    """Deleted chats and replies that are still being written are not searched."""

    def __init__(self, file: HistoryFile) -> None:
        self._file = file

    async def find(self, query: str, *, most: int = MAX_HITS) -> list[TextHit]:
        """The newest message of each chat that has all words of the query, the newest first. Raises StoreError."""
        words = words_of(query)
        if not any(len(word) > 1 or _UNSPACED.search(word) for word in words):
            return []  # a letter is the beginning of nearly everything
        if _UNSPACED.search(query):
            return await self._find_letters(query.split(), most)
        match = " ".join(f'"{word}"*' if len(word) > 1 else f'"{word}"' for word in words)

        def read(database: sqlite3.Connection) -> list[TextHit]:
            found = database.execute(_BY_WORDS, (match, most)).fetchall()
            ids = [message_id for _, message_id in found]
            statement = _SNIPPETS.format(marks=", ".join("?" for _ in ids))
            values = (_OPEN, _CLOSE, _SNIPPET_TOKENS, match, *ids)
            snippets = dict(database.execute(statement, values).fetchall())
            return [_hit(chat_id, one, snippets[one]) for chat_id, one in found]

        return await self._file.do(read)

    async def _find_letters(self, parts: list[str], most: int) -> list[TextHit]:
        conditions = " AND ".join("instr(messages.text, ?)" for _ in parts)
        statement = _BY_LETTERS.format(conditions=conditions)

        def read(database: sqlite3.Connection) -> list[TextHit]:
            found = database.execute(statement, (*parts, most))
            return [_hit(chat_id, one, _cut_around(text, parts)) for chat_id, one, text in found]

        return await self._file.do(read)


def words_of(query: str) -> list[str]:
    """The words of what somebody typed into a search field; marks between them mean nothing."""
    return _WORD.findall(query)


def _hit(chat_id: int, message_id: int, marked: str) -> TextHit:
    return TextHit(chat_id=chat_id, message_id=message_id, snippet=_unmarked(marked))


def _unmarked(marked: str) -> Snippet:
    """The text on one line, and where the marks were."""
    line = one_line(marked)
    parts: list[str] = []
    marks: list[tuple[int, int]] = []
    length = 0
    for place, part in enumerate(re.split(f"[{_OPEN}{_CLOSE}]", line)):
        if place % 2:
            marks.append((length, length + len(part)))
        parts.append(part)
        length += len(part)
    return Snippet(text="".join(parts), marks=tuple(marks))


def _cut_around(text: str, parts: list[str]) -> str:
    """The text around the first part, with the marks that FTS5 would have put."""
    text = text.replace(_OPEN, "").replace(_CLOSE, "")
    middle = text.find(parts[0])
    start, end = max(0, middle - _AROUND_CHARS), middle + len(parts[0]) + _AROUND_CHARS
    cut = text[start:end]
    for part in dict.fromkeys(parts):
        cut = cut.replace(part, f"{_OPEN}{part}{_CLOSE}")
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
