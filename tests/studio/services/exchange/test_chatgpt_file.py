"""ChatGPT's exports: the tree becomes versions, tools and hidden messages go, broken entries are counted."""

from __future__ import annotations

from typing import Any

import pytest

from studio.models.chat import Role
from studio.models.message_tree import MessageTree
from studio.services.exchange.chatgpt_file import decode


def node(key: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "parent": parent,
        "children": [],
        "message": {
            "author": {"role": role},
            "create_time": 1_700_000_000.5,
            "content": {"content_type": "text", "parts": list(parts)},
            "recipient": "all",
            **more,
        },
    }


def conversation(*nodes: dict[str, Any], current: str = "", **more: Any) -> dict[str, Any]:
    return {
        "title": "A chat",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_900.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current,
        **more,
    }


ROOT = {"id": "root", "parent": None, "children": [], "message": None}


def test_a_tree_of_messages_becomes_versions() -> None:
    reading = decode(
        [
            conversation(
                ROOT,
                node("s", "root", "system", "", metadata={}),
                node("u", "s", "user", "Hello?"),
                node("a1", "u", "assistant", "First answer"),
                node("a2", "u", "assistant", "Second answer"),
                node("u2", "a1", "user", "Thanks"),
                current="u2",
            )
        ]
    )
    (found,) = reading.chats
    tree = MessageTree(found.messages)
    shown = tree.path_to(tree.get(found.leaf_id))
    assert [one.text for one in shown] == ["Hello?", "First answer", "Thanks"]
    assert [one.text for one in tree.versions_of(shown[1])] == ["First answer", "Second answer"]
    assert [one.role for one in shown] == [Role.USER, Role.ASSISTANT, Role.USER]
    assert (found.chat.created_s, found.chat.updated_s) == (1_700_000_000.0, 1_700_000_900.0)
    assert found.chat.title == "A chat"


def test_tools_and_hidden_messages_are_left_out_and_the_rest_hangs_together() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    (found,) = decode(
        [
            conversation(
                ROOT,
                node("h", "root", "user", "secret profile", metadata=hidden),
                node("u", "h", "user", "Draw it"),
                node("call", "u", "assistant", "print(1)", recipient="python"),
                node("tool", "call", "tool", "1"),
                node("a", "tool", "assistant", "Done"),
                current="tool",
            )
        ]
    ).chats
    assert [(one.text, one.parent_id) for one in found.messages] == [("Draw it", None), ("Done", 1)]
    assert found.leaf_id == 1


def test_pictures_and_code_are_said_in_words() -> None:
    code = {"content_type": "code", "text": "x = 1"}
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    mixed = {"content_type": "multimodal_text", "parts": [picture, "What is it?", ""]}
    (found,) = decode(
        [
            conversation(
                node("u", None, "user", content=mixed),
                node("t", "u", "assistant", content=thoughts),
                node("a", "t", "assistant", content=code),
                current="a",
            )
        ]
    ).chats
    assert [one.text for one in found.messages] == ["[image]\n\nWhat is it?", "x = 1"]


@pytest.mark.parametrize(
    "entry",
    [None, 3, "text", {}, {"mapping": 3}, {"mapping": {"a": {"message": {"author": 3}}}}],
)
def test_what_is_no_conversation_is_counted(entry: object) -> None:
    reading = decode([entry, conversation(node("u", None, "user", "Hi"), current="u")])
    assert (len(reading.chats), reading.num_broken) == (1, 1)


def test_an_empty_conversation_is_no_chat_and_no_damage() -> None:
    reading = decode([conversation(ROOT, current="root")])
    assert (reading.chats, reading.num_broken, reading.num_empty) == ((), 0, 1)
    assert (reading + reading).num_empty == 2


@pytest.mark.parametrize(
    ("title", "name"),
    [("evil \u202egpj.exe\x00", "evil gpj.exe"), ("\u202e\u200b", "New chat"), ("a\nb", "a b")],
)
def test_a_name_is_one_line_of_what_can_be_seen(title: str, name: str) -> None:
    entry = conversation(node("u", None, "user", "Hi"), current="u", title=title)
    (found,) = decode([entry]).chats
    assert found.chat.title == name


def test_a_ring_of_nodes_ends() -> None:
    (found,) = decode(
        [
            conversation(
                {"id": "x", "parent": "y", "message": None},
                {"id": "y", "parent": "x", "message": None},
                node("u", "x", "user", "Hi"),
                node("a", "a", "assistant", "Hello"),
                current="y",
            )
        ]
    ).chats
    assert [one.parent_id for one in found.messages] == [None, None]
