"""Answers of tools as text: every kind of content in words, within a limit."""

from __future__ import annotations

from typing import Any

import pytest

from studio.services.tools.answers import answer_of


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "sunny"}, "sunny"),
        ({"type": "image", "mimeType": "image/png", "data": "MTIz"}, "[image: image/png, 3 bytes]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "#"}, "[audio: audio/wav, damaged]"),
        ({"type": "resource_link", "name": "a", "uri": "file:///a"}, "[resource: a, file:///a]"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "MTIz"}},
            "[resource: file:///a, 3 bytes]",
        ),
        ({"type": "hologram"}, "[content of the kind 'hologram', which Layby does not know]"),
        ("nothing", ""),
    ],
)
def test_each_kind_of_content_is_told_in_words(block: Any, text: str) -> None:
    assert answer_of({"content": [block]}).text == text


def test_several_blocks_stand_one_under_the_other() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answer_of({"content": blocks}).text == "a\n\nb"


def test_where_there_is_only_a_value_it_is_told() -> None:
    assert answer_of({"content": [], "structuredContent": {"°C": 7}}).text == '{"°C": 7}'


def test_an_error_is_told_as_one_and_a_long_answer_is_cut() -> None:
    answer = answer_of(
        {"content": [{"type": "text", "text": "abcdef"}], "isError": True}, most_chars=4
    )
    assert answer.is_error
    assert answer.text == "abcd\n[cut off here: 2 characters more]"
