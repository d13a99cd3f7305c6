"""MessageTree: versions beside each other, paths to their ends, and messages that go and come back."""

from __future__ import annotations

import random

from studio.models.chat import Conversation, Message, Role
from studio.models.message_tree import MessageTree


def message(message_id: int, parent_id: int | None, role: Role = Role.USER) -> Message:
    return Message(message_id, 1, role, f"m{message_id}", 0.0, parent_id=parent_id)


def ids(messages: object) -> list[int]:
    return [one.message_id for one in messages]  # type: ignore[attr-defined]


def test_versions_are_those_in_the_same_place_and_of_the_same_role() -> None:
    tree = MessageTree(
        [
            *(message(1, None), message(2, 1, Role.ASSISTANT), message(3, 1, Role.ASSISTANT)),
            *(message(4, None), message(5, 1)),
        ]
    )
    second = tree.get(2)
    assert second is not None
    assert ids(tree.versions_of(second)) == [2, 3]
    first = tree.get(1)
    assert first is not None
    assert ids(tree.versions_of(first)) == [1, 4]
    stranger = message(9, 77)
    assert tree.versions_of(stranger) == (stranger,)


def test_a_path_leads_from_the_beginning_and_the_newest_end_follows_the_newest_versions() -> None:
    tree = MessageTree([message(1, None), message(2, 1), message(3, 2), message(4, 1)])
    assert ids(tree.path_to(tree.get(3))) == [1, 2, 3]
    assert tree.path_to(None) == []
    assert tree.newest_end(None) is tree.get(4)
    assert tree.newest_end(tree.get(2)) is tree.get(3)


def test_a_message_whose_parent_is_lost_hangs_on_the_one_before_it() -> None:
    tree = MessageTree([message(1, None), message(2, 1), message(5, 4), message(6, 5)])
    assert ids(tree.path_to(tree.get(6))) == [1, 2, 5, 6]
    alone = MessageTree([message(5, 4)])
    assert ids(alone.path_to(alone.get(5))) == [5]


def test_what_hung_on_a_removed_message_hangs_on_its_parent_until_it_is_put_back() -> None:
    dice = random.Random(5)
    for _ in range(200):
        made: list[Message] = []
        for message_id in range(1, 12):
            parent = dice.choice([None, *ids(made)])
            made.append(message(message_id, parent))
        tree = MessageTree(made)
        before = {one.message_id: (one.parent_id, ids(tree.versions_of(one))) for one in tree}
        gone = dice.choice(made)
        orphans = tree.remove(gone)
        assert tree.get(gone.message_id) is None
        assert len(tree) == 10
        assert all(orphan.parent_id == gone.parent_id for orphan in orphans)
        assert all(tree.path_to(one)[0].parent_id is None for one in tree)
        tree.put_back(gone, orphans)
        assert list(tree) == made
        after = {one.message_id: (one.parent_id, ids(tree.versions_of(one))) for one in tree}
        assert after == before


def test_a_chat_shows_the_version_it_is_told_to_and_goes_on_from_there() -> None:
    chat = Conversation(1, "title", 0.0, 0.0)
    for number in (1, 2, 3):
        chat.append(message(number, None))
    assert (ids(chat.messages), chat.leaf_id) == ([1, 2, 3], 3)
    chat.show(chat.tree.get(1))
    chat.append(message(4, None))
    assert ids(chat.messages) == [1, 4]
    assert ids(chat.versions_of(chat.messages[1])) == [2, 4]
    chat.show(None)
    assert (chat.messages, chat.leaf_id) == ([], None)
