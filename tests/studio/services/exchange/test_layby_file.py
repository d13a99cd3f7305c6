"""Layby's own file holds everything of a chat, and reading one never trusts it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.api import SamplingParams
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, Message, MessageStatus, ReplyStats, Role
from studio.models.chat_settings import ChatSettings
from studio.models.message_tree import MessageTree
from studio.services.exchange.layby_file import decode, encode, entry_of
from studio.services.exchange.reading import BrokenEntry, parents_first


def message(number: int, text: str, parent: int | None = None, **more: Any) -> Message:
    role = Role.USER if number % 2 else Role.ASSISTANT
    return Message(number, 7, role, text, 100.0 + number, parent_id=parent, **more)


def rich_chat() -> Conversation:
    """Two versions of a reply, files, settings that differ."""
    chat = Conversation(
        chat_id=7,
        title="Trip “Lisbon”",
        created_s=100.5,
        updated_s=200.25,
        settings=ChatSettings(
            system_prompt="Be brief.",
            sampling=SamplingParams(temperature=0.1, logit_bias=((3, -1.5),), seed=5),
            max_tokens=99,
            stop=("END", "\n\n"),
        ),
        is_pinned=True,
        is_archived=True,
        draft="half a thought",
        is_loaded=True,
    )
    files = (
        Attachment(name="a.py", kind=AttachmentKind.CODE, text="x = 1\n", num_tokens=4, path="/a"),
        Attachment(name="p.png", kind=AttachmentKind.IMAGE, data=b"\x00\xff"),
    )
    chat.tree = MessageTree(
        [
            message(1, "Plan it", attachments=files),
            message(2, "Day 1 …", 1, stats=ReplyStats(completion_tokens=3, parked_s=1.5)),
            message(4, "Day one", 1, status=MessageStatus.STOPPED, note="why"),
            message(5, "Thanks \N{PARTY POPPER}", 2),
        ]
    )
    chat.show(chat.tree.get(5))
    return chat


def plain(chat: Conversation) -> list[tuple[Any, ...]]:
    return [
        (m.role, m.text, m.created_s, m.status, m.note, m.stats, m.attachments) for m in chat.tree
    ]


def test_nothing_is_lost_on_the_way() -> None:
    chat = rich_chat()
    (found,) = decode(json.loads(encode([entry_of(chat, ["Work", "Trips"])], now_s=1.0))).chats
    again = found.chat
    assert (again.title, again.created_s, again.updated_s) == (chat.title, 100.5, 200.25)
    assert (again.settings, again.draft) == (chat.settings, chat.draft)
    assert (again.is_pinned, again.is_archived) == (True, True)
    assert found.folder == ("Work", "Trips")
    again.tree = MessageTree(found.messages)
    assert plain(again) == plain(chat)
    assert [one.parent_id for one in found.messages] == [None, 1, 1, 2]
    again.show(again.tree.get(found.leaf_id))
    assert [one.text for one in again.messages] == [one.text for one in chat.messages]


def test_a_reply_that_is_being_written_is_interrupted_in_the_file() -> None:
    chat = Conversation(1, "A", 1.0, 2.0, is_loaded=True)
    chat.append(message(1, "Hello"))
    chat.append(message(2, "Hel", status=MessageStatus.WRITING))
    (found,) = decode(json.loads(encode([entry_of(chat, [])], now_s=1.0))).chats
    assert found.messages[1].status is MessageStatus.INTERRUPTED


def test_halves_of_surrogate_pairs_do_not_stop_an_export() -> None:
    chat = Conversation(1, "A \ud83d", 1.0, 2.0, draft="\udc00", is_loaded=True)
    assert decode(json.loads(encode([entry_of(chat, [])], now_s=1.0))).chats


@pytest.mark.parametrize(
    "entry", [None, 3, "x", [], {}, {"title": 3}, {"title": "A", "messages": 7}]
)
def test_what_is_no_chat_is_left_out_and_counted(entry: object) -> None:
    good = {"title": "Good", "messages": []}
    reading = decode({"format": "layby chats", "version": 1, "chats": [entry, good]})
    assert ([one.chat.title for one in reading.chats], reading.num_broken) == (["Good"], 1)


def test_a_file_without_a_list_is_none() -> None:
    with pytest.raises(BrokenEntry):
        decode({"format": "layby chats", "chats": "many"})


def test_any_damage_to_a_file_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    """Values are swapped for others at random; reading ends, and what it gives can be shown."""
    data = json.loads(encode([entry_of(rich_chat(), ["A"])], now_s=1.0))
    dice = random.Random(3)
    junk: list[Any] = [None, -1, 0, 1 << 70, 1e400, "", "x", [], {}, [[]], True, "text", -0.5]

    def places(node: Any) -> list[tuple[Any, Any]]:
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        found = [(node, key) for key in keys]
        for key in keys:
            if isinstance(node[key], dict | list):
                found += places(node[key])
        return found

    for _ in range(500):
        damaged = json.loads(json.dumps(data))
        for _ in range(dice.randint(1, 3)):
            node, key = dice.choice(places(damaged["chats"]))
            node[key] = dice.choice(junk)
        for found in decode(damaged).chats:
            tree = MessageTree(found.messages)
            assert len(tree) == len(found.messages)
            for one in tree:
                assert tree.path_to(one)


def test_rings_and_lost_parents_become_beginnings() -> None:
    ring = [message(1, "a", 3), message(2, "b", 1), message(3, "c", 2), message(4, "d", 99)]
    ordered = parents_first(ring)
    assert sorted(one.text for one in ordered) == ["a", "b", "c", "d"]
    assert sum(one.parent_id is None for one in ordered) == 2
    seen: set[int] = set()
    for one in ordered:
        assert one.parent_id is None or one.parent_id in seen
        seen.add(one.message_id)


def test_a_long_chat_is_put_in_order_without_recursion() -> None:
    line = [message(number, "x", number - 1 or None) for number in range(5000, 0, -1)]
    ordered = parents_first(line)
    assert [one.parent_id for one in ordered[:3]] == [None, 1, 2]
    assert len(ordered) == 5000


def test_names_are_one_line_of_what_can_be_seen() -> None:
    entry = {"title": "\u202e\u200b", "folder": ["\u202eA\x07", "\u200b"], "messages": []}
    (found,) = decode({"chats": [entry]}).chats
    assert (found.chat.title, found.folder) == ("New chat", ("A",))
