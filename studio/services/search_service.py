"""Search over names and texts of chats. GUI thread, asyncio, no Qt."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from studio.models.chat import Conversation
from studio.models.search_hit import Snippet
from studio.services.chat_book import ChatBook
from studio.services.history_search import HistorySearch


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChat:
    """A chat that was found, and where in it."""

    chat: Conversation
    message_id: int | None = None
    """The newest message that has the words; None: only the name has them."""
    snippet: Snippet | None = None
    """Of that message."""


class SearchService:
    """Names are matched in memory, in the middle of words too; texts by the history's index."""

    def __init__(self, book: ChatBook, history: HistorySearch) -> None:
        self._book = book
        self._history = history

    def in_names(self, query: str) -> list[Conversation]:
        """Chats whose name has all parts of the query, the last used first; returns at once."""
        parts = folded(query).split()
        return [
            chat
            for chat in self._book.chats
            if parts and all(part in folded(chat.title) for part in parts)
        ]

    async def find(self, query: str) -> list[FoundChat]:
        """Chats whose name or text has the query: first by name, then by text, each once. Raises StoreError."""
        found = {chat.chat_id: FoundChat(chat=chat) for chat in self.in_names(query)}
        hits = await self._history.find(query)
        chats = {chat.chat_id: chat for chat in self._book.chats}
        for hit in hits:
            chat = chats.get(hit.chat_id)
            known = found.get(hit.chat_id)
            if chat is not None and (known is None or known.message_id is None):
                found[hit.chat_id] = FoundChat(
                    chat=chat, message_id=hit.message_id, snippet=hit.snippet
                )
        return list(found.values())


def folded(text: str) -> str:
    """Without case and accents, as the index has it."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))
