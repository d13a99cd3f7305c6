"""The chats and messages on disk: asynchronous methods over the history's file.

A method that returns has committed to the disk; one that raises StoreError has changed nothing. No Qt.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from studio.models.attachment import Attachment
from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus
from studio.services.history_file import HistoryFile, insert, transaction
from studio.services.history_lists import HistoryLists
from studio.services.history_rows import (
    ATTACHMENT_COLUMNS,
    CHAT_COLUMNS,
    LAST_END,
    MESSAGE_COLUMNS,
    Holder,
    Row,
    attachment_from_row,
    attachment_row,
    chat_from_row,
    chat_row,
    message_from_row,
    message_row,
    put_statement,
)
from studio.services.history_search import HistorySearch

_PUT_CHAT = put_statement("chats", CHAT_COLUMNS)
_PUT_MESSAGE = put_statement("messages", MESSAGE_COLUMNS)
_PUT_ATTACHMENT = put_statement("attachments", ATTACHMENT_COLUMNS)
_SHOW = "UPDATE chats SET leaf_id = ? WHERE chat_id = ?"
_LAST_CHAT_ID = (
    "SELECT max(coalesce((SELECT max(chat_id) FROM chats), 0), "
    "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'chats'), 0))"
)
_END_ALIVE = (
    f"UPDATE messages SET status = '{MessageStatus.INTERRUPTED.value}', note = '' WHERE status IN "
    f"({', '.join(repr(one.value) for one in MessageStatus if one.is_alive and one is not MessageStatus.TOOLS)})"
)
"""Those that wait for the user's word to a tool wait on."""
_DELETE_UNTOUCHED = (
    "DELETE FROM chats WHERE title = ? AND draft = '' AND queued IS NULL AND system_prompt = '' "
    "AND NOT is_pinned "
    "AND chat_id NOT IN (SELECT chat_id FROM messages) "
    "AND chat_id NOT IN (SELECT chat_id FROM attachments)"
)


class HistoryStore:
    """Everything of the chats that must outlive the program. `open` before, `close` after everything else."""

    def __init__(self, path: Path) -> None:
        self.file = HistoryFile(path)
        self.lists = HistoryLists(self.file)
        self.search = HistorySearch(self.file)
        self._last_chat_id = 0

    async def open(self) -> None:
        """Open the file, or make it.

        Raises StoreBusy if another process has it open, StoreError if it cannot be used.
        """
        await self.file.take()
        (self._last_chat_id,) = await self.file.do(
            lambda database: database.execute(_LAST_CHAT_ID).fetchone()
        )

    def new_chat_id(self) -> int:
        """An id that no chat has or had; nothing is stored with it yet."""
        self._last_chat_id += 1
        return self._last_chat_id

    async def tidy_up(self) -> None:
        """Replies that a dead program left alive end as INTERRUPTED, keeping their text; chats without a word go."""
        await self.file.do(_tidy_up)

    async def end_alive(self) -> None:
        """The first half of it, for when the chats are in use."""
        await self.file.do(lambda database: database.execute(_END_ALIVE).rowcount)

    async def check(self) -> None:
        """Let SQLite check the whole file; damage is repaired as far as possible and told by the file's signal."""
        await self.file.check()

    def end_check(self) -> None:
        """Let a `check` that is running or still to come return at once, having found nothing."""
        self.file.end_check()

    async def close(self) -> None:
        """Close the file and end its thread, also after a failed `open`."""
        await self.file.close()

    async def load_chats(self) -> list[Conversation]:
        """All chats, deleted ones too, without messages but with the status of the last; the last used first."""
        query = (
            f"SELECT {CHAT_COLUMNS}, {LAST_END} FROM chats ORDER BY updated_s DESC, chat_id DESC"
        )

        def read(database: sqlite3.Connection) -> list[Conversation]:
            return [chat_from_row(row) for row in database.execute(query)]

        return await self.file.do(read)

    async def load_messages(self, chat_id: int) -> list[Message]:
        """All messages of a chat with their attachments, in the order they were written."""

        where = "WHERE chat_id = ? ORDER BY"
        query = f"SELECT {MESSAGE_COLUMNS} FROM messages {where} message_id"
        attached = f"SELECT {ATTACHMENT_COLUMNS} FROM attachments {where} attachment_id"

        def read(database: sqlite3.Connection) -> list[Message]:
            rows = database.execute(query, (chat_id,))
            messages = {row[0]: message_from_row(row) for row in rows}
            for row in database.execute(attached, (chat_id,)):
                if (message := messages.get(row[2])) is not None:
                    message.attachments = (*message.attachments, attachment_from_row(row))
            return list(messages.values())

        return await self.file.do(read)

    async def load_waiting(self, chat_id: int, holder: Holder) -> tuple[Attachment, ...]:
        """The attachments of a chat's draft, or of its queued prompt."""
        query = (
            f"SELECT {ATTACHMENT_COLUMNS} FROM attachments WHERE chat_id = ? AND holder = ? "
            "ORDER BY attachment_id"
        )
        values = (chat_id, holder.value)
        rows = await self.file.do(lambda database: database.execute(query, values).fetchall())
        return tuple(attachment_from_row(row) for row in rows)

    async def add_chat(self, chat: Conversation) -> int:
        """Store a new chat; returns the id it got."""
        row = (self.new_chat_id(), *chat_row(chat)[1:])
        return await self.file.do(lambda database: insert(database, _PUT_CHAT, row))

    async def add_messages(self, chat: Conversation, messages: Sequence[Message]) -> list[int]:
        """Store new messages together with their chat's row, all or none; returns their ids.

        The first hangs on its own parent, each other one on the one before it; the chat ends with the last. The
        attachments of the draft or queue that a message carries go over to it.
        """
        changed_chat = chat_row(chat)
        rows = [message_row(message) for message in messages]
        attachments = [message.attachments for message in messages]

        def add(database: sqlite3.Connection) -> list[int]:
            ids: list[int] = []
            with transaction(database):
                database.execute(_PUT_CHAT, changed_chat)
                for row, attached in zip(rows, attachments, strict=True):
                    parent_id = ids[-1] if ids else row[-1]
                    ids.append(insert(database, _PUT_MESSAGE, (None, *row[1:-1], parent_id)))
                    _attach(database, (chat.chat_id, ids[-1]), attached)
                if ids:
                    database.execute(_SHOW, (ids[-1], chat.chat_id))
            return ids

        return await self.file.do(add)

    async def copy_messages(
        self, chat: Conversation, messages: Sequence[Message]
    ) -> dict[int, int]:
        """Store copies of another chat's messages, parents first, as those of a chat that has none yet.

        Returns their new ids by the old ones; a parent that is not among them is left out.
        """
        rows = _rows_of(messages)

        def copy(database: sqlite3.Connection) -> dict[int, int]:
            with transaction(database):
                return _add_copies(database, chat.chat_id, rows)

        return await self.file.do(copy)

    async def add_whole_chats(
        self, chats: Sequence[tuple[Conversation, Sequence[Message]]]
    ) -> list[tuple[int, int | None]]:
        """Store new chats with their messages, parents first, all or none.

        A chat's `leaf_id` is one of the ids that its messages have here. Returns the id of each chat and of its leaf.
        """
        entries = [
            ((self.new_chat_id(), *chat_row(chat)[1:]), chat.leaf_id, _rows_of(messages))
            for chat, messages in chats
        ]

        def add(database: sqlite3.Connection) -> list[tuple[int, int | None]]:
            added: list[tuple[int, int | None]] = []
            with transaction(database):
                for row, leaf_id, messages in entries:
                    chat_id = insert(database, _PUT_CHAT, row)
                    new_leaf_id = _add_copies(database, chat_id, messages).get(leaf_id or 0)
                    database.execute(_SHOW, (new_leaf_id, chat_id))
                    added.append((chat_id, new_leaf_id))
            return added

        return await self.file.do(add)

    async def save(self, chats: Sequence[Conversation], messages: Sequence[Message]) -> None:
        """Store chats and messages as they are at the call, all or none."""
        chat_rows = [chat_row(chat) for chat in chats]
        message_rows = [message_row(message) for message in messages]

        def put(database: sqlite3.Connection) -> None:
            with transaction(database):
                database.executemany(_PUT_CHAT, chat_rows)
                database.executemany(_PUT_MESSAGE, message_rows)

        await self.file.do(put)

    async def put_back_message(self, message: Message) -> None:
        """Store a message that was deleted, under its old id and with its attachments."""
        row = message_row(message)

        def put(database: sqlite3.Connection) -> None:
            with transaction(database):
                database.execute(_PUT_MESSAGE, row)
                for one in message.attachments:
                    owner = (message.chat_id, message.message_id, Holder.MESSAGE.value)
                    database.execute(
                        _PUT_ATTACHMENT, (one.attachment_id, *owner, *attachment_row(one))
                    )

        await self.file.do(put)

    async def delete_message(self, message_id: int) -> None:
        """Delete one message with its attachments; what hangs on it must have been saved elsewhere."""
        statement = "DELETE FROM messages WHERE message_id = ?"
        await self.file.do(lambda database: database.execute(statement, (message_id,)).rowcount)

    async def delete_chats(self, chat_ids: Sequence[int]) -> None:
        """Delete chats with their messages for good; unknown ids are fine."""
        rows = [(chat_id,) for chat_id in chat_ids]

        def delete(database: sqlite3.Connection) -> None:
            with transaction(database):
                database.executemany("DELETE FROM chats WHERE chat_id = ?", rows)

        await self.file.do(delete)

    async def attach(self, chat: Conversation, attachment: Attachment, holder: Holder) -> int:
        """Store an attachment of a draft or a queued prompt, and the chat as it is; returns the id it got."""
        changed_chat = chat_row(chat)
        row = (None, chat.chat_id, None, holder.value, *attachment_row(attachment))

        def add(database: sqlite3.Connection) -> int:
            with transaction(database):
                database.execute(_PUT_CHAT, changed_chat)
                return insert(database, _PUT_ATTACHMENT, row)

        return await self.file.do(add)

    async def detach(self, attachment_ids: Sequence[int]) -> None:
        """Delete attachments; unknown ids are fine."""
        rows = [(one,) for one in attachment_ids]
        statement = "DELETE FROM attachments WHERE attachment_id = ?"
        await self.file.do(lambda database: database.executemany(statement, rows).rowcount)

    async def hand_over(self, attachment_ids: Sequence[int], holder: Holder) -> None:
        """Let attachments belong to the draft, or to the queued prompt, from now on."""
        rows = [(holder.value, one) for one in attachment_ids]
        statement = "UPDATE attachments SET holder = ? WHERE attachment_id = ?"
        await self.file.do(lambda database: database.executemany(statement, rows).rowcount)


def _rows_of(messages: Sequence[Message]) -> list[tuple[Row, tuple[Attachment, ...]]]:
    return [(message_row(message), message.attachments) for message in messages]


def _add_copies(
    database: sqlite3.Connection,
    chat_id: int,
    messages: Sequence[tuple[Row, tuple[Attachment, ...]]],
) -> dict[int, int]:
    """Insert messages with their attachments into a chat that has none; their new ids by the old ones."""
    ids: dict[int, int] = {}
    for row, attached in messages:
        old_id, parent_id = row[0], ids.get(row[-1])  # type: ignore[call-overload]
        new_id = insert(database, _PUT_MESSAGE, (None, chat_id, *row[2:-1], parent_id))
        ids[old_id] = new_id  # type: ignore[index]
        for attachment in attached:
            owner = (chat_id, new_id, Holder.MESSAGE.value)
            insert(database, _PUT_ATTACHMENT, (None, *owner, *attachment_row(attachment)))
    return ids


def _tidy_up(database: sqlite3.Connection) -> None:
    with transaction(database):
        database.execute(_END_ALIVE)
        database.execute(_DELETE_UNTOUCHED, (NEW_CHAT_TITLE,))


def _attach(
    database: sqlite3.Connection, owner: tuple[int, int], attachments: Sequence[Attachment]
) -> None:
    """Let attachments belong to the message of `owner`, which is (chat, message); new ones are stored."""
    chat_id, message_id = owner
    for one in attachments:
        key = one.attachment_id or None
        row = (key, chat_id, message_id, Holder.MESSAGE.value, *attachment_row(one))
        database.execute(_PUT_ATTACHMENT, row)
