"""All messages of a chat as a tree: an edited prompt and a reply asked for again are versions beside the older ones.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studio.models.chat import Message


class MessageTree:
    """Each message hangs on the one that it answers or follows; those that begin a chat hang on nothing.

    `messages` come parents first, as they were written. One whose parent is lost hangs on the one before it.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._by_id: dict[int, Message] = {}
        self._children: dict[int | None, list[Message]] = {}
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Message]:
        """In the order they were written."""
        return iter(self._by_id.values())

    def get(self, message_id: int | None) -> Message | None:
        """The message of this id, if it is one of them."""
        return self._by_id.get(message_id) if message_id is not None else None

    def add(self, message: Message) -> None:
        """Hang the newest message on its parent."""
        if message.parent_id is not None and message.parent_id not in self._by_id:
            message.parent_id = next(reversed(self._by_id), None)
        self._by_id[message.message_id] = message
        self._children.setdefault(message.parent_id, []).append(message)

    def remove(self, message: Message) -> tuple[Message, ...]:
        """Take one message out; what hung on it hangs on its parent now, and is returned."""
        del self._by_id[message.message_id]
        beside = self._children[message.parent_id]
        place = beside.index(message)
        orphans = self._children.pop(message.message_id, [])
        for orphan in orphans:
            orphan.parent_id = message.parent_id
        beside[place : place + 1] = orphans
        return tuple(orphans)

    def put_back(self, message: Message, children: Iterable[Message]) -> None:
        """Undo `remove`: the message hangs where it was, and these hang on it again."""
        later = [one for one in self._by_id.values() if _is_after(one, message)]
        self._by_id[message.message_id] = message
        for one in later:
            self._by_id[one.message_id] = self._by_id.pop(one.message_id)
        beside = self._children.setdefault(message.parent_id, [])
        beside.append(message)
        own = self._children.setdefault(message.message_id, [])
        for child in children:
            if child in beside:
                beside.remove(child)
                child.parent_id = message.message_id
                own.append(child)
        beside.sort(key=lambda one: abs(one.message_id))

    def versions_of(self, message: Message) -> tuple[Message, ...]:
        """The message and those in its place, oldest first."""
        beside = self._children.get(message.parent_id, [])
        versions = tuple(one for one in beside if one.role is message.role)
        return versions if message in versions else (message,)

    def path_to(self, message: Message | None) -> list[Message]:
        """From the beginning of the chat to this message, itself included; nothing for None."""
        path = []
        while message is not None:
            path.append(message)
            message = self.get(message.parent_id)
        path.reverse()
        return path

    def newest_end(self, message: Message | None) -> Message | None:
        """The end of the newest versions below a message, or below the beginning; itself where nothing follows."""
        while children := self._children.get(message.message_id if message else None):
            message = children[-1]
        return message


def _is_after(one: Message, other: Message) -> bool:
    """Whether it was written later. Ids grow, and those of chats that are not stored grow below zero."""
    return abs(one.message_id) > abs(other.message_id)
