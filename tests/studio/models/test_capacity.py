"""How many chats fit: whole pages for each, and what becomes of one more."""

from __future__ import annotations

import pytest

from studio.models.capacity import Capacity, OneMore, capacity_of


@pytest.mark.parametrize(
    ("pool", "chat", "parallel", "room", "fit", "one_more"),
    [
        (8192, 2000, 8, 4, 4, OneMore.PARKS),
        (8192, 2000, 4, 4, 4, OneMore.QUEUES),
        (8192, 2000, 2, 4, 2, OneMore.QUEUES),
        (8192, 2049, 8, 3, 3, OneMore.PARKS),  # 65 pages each, not 64
        (2048, 2000, 4, 1, 1, OneMore.PARKS),
        (1024, 2000, 4, 0, 0, OneMore.PARKS),
        (0, 1, 1, 0, 0, OneMore.PARKS),
        (96, 1, 9, 3, 3, OneMore.PARKS),
    ],
)
def test_chats_take_whole_pages_and_a_seat_each(
    pool: int, chat: int, parallel: int, room: int, fit: int, one_more: OneMore
) -> None:
    found = capacity_of(pool, chat_tokens=chat, parallel=parallel)
    assert found == Capacity(chat_tokens=chat, room=room, fit=fit, one_more=one_more)


def test_without_parking_one_more_ends() -> None:
    found = capacity_of(4096, chat_tokens=2000, parallel=4, can_park=False)
    assert found.one_more is OneMore.ENDS


@pytest.mark.parametrize("name", ["chat_tokens", "parallel", "page_tokens"])
def test_what_makes_no_sense_is_refused(name: str) -> None:
    sizes = {"chat_tokens": 100, "parallel": 4, "page_tokens": 32, name: 0}
    with pytest.raises(ValueError, match=name):
        capacity_of(1000, **sizes)
