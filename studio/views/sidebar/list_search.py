"""What the search field finds, as rows: names at once, texts as soon as the history has looked. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from studio.models.chat import Conversation
from studio.models.search_hit import FoundPlace, Snippet
from studio.services.history_search import words_of
from studio.services.search_service import FoundChat, SearchService, folded
from studio.views.sidebar.list_rows import ChatRow, HeaderRow, Row, Section
from studio.views.tasks import Tasks

_PAUSE_MS = 120
"""After the last letter, before the texts are searched."""


class ListSearch(QObject):
    """`changed` comes when `rows` has other rows."""

    changed = Signal()

    def __init__(self, service: SearchService, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._service = service
        self._tasks = tasks
        self._query = ""
        self._found: list[FoundChat] = []
        """With what an earlier query had found in texts, until the history has looked for this one."""
        self.is_complete = True
        """Whether the texts have been searched for what stands in the field."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._start)

    def close(self) -> None:
        """Start no search any more."""
        self._timer.stop()

    def look_for(self, query: str) -> None:
        """Search for this from now on; nothing for an empty one."""
        self._query = query.strip()
        self.is_complete = not self._query
        if self._query:
            self._timer.start()
        else:
            self._timer.stop()
            self._found = []
        self.changed.emit()

    def rows(self) -> Sequence[Row]:
        """The chats whose names have it, then those whose texts have it; each once."""
        hits = {one.chat.chat_id: one for one in self._found if one.chat.deleted_s is None}
        named = [
            _row(chat, Section.NAMES, hits.pop(chat.chat_id, None))
            for chat in self._service.in_names(self._query)
        ]
        texts = [_row(hit.chat, Section.TEXTS, hit) for hit in hits.values()]
        rows: list[Row] = []
        for section, some in ((Section.NAMES, named), (Section.TEXTS, texts)):
            if some:
                rows += [HeaderRow(section=section), *some]
        return rows

    def place_of(self, row: ChatRow) -> FoundPlace | None:
        """Where a row of these leads to; None where only the name has it."""
        if row.message_id is None or row.snippet is None:
            return None
        words = words_in(self._query, row.snippet)
        return FoundPlace(message_id=row.message_id, query=self._query, words=words)

    def _start(self) -> None:
        self._tasks.start(self._look(self._query))

    async def _look(self, query: str) -> None:
        found = await self._service.find(query)
        if query == self._query:
            self._found = [one for one in found if one.snippet is not None]
            self.is_complete = True
            self.changed.emit()


def words_in(query: str, snippet: Snippet) -> tuple[str, ...]:
    """The words of a query as they stand in the text that was found, where they may have accents."""
    marked = [snippet.text[begin:end] for begin, end in snippet.marks]
    words: dict[str, None] = {}
    for word in words_of(query):
        plain = [one for one in marked if folded(one).startswith(folded(word))]
        has_it = not plain or any(one.casefold().startswith(word.casefold()) for one in plain)
        words |= dict.fromkeys([word] if has_it else plain)
    return tuple(words)


def _row(chat: Conversation, section: Section, hit: FoundChat | None) -> ChatRow:
    if hit is None:
        return ChatRow(chat=chat, section=section)
    return ChatRow(chat=chat, section=section, message_id=hit.message_id, snippet=hit.snippet)
