"""The timeline: what lies where, who was waited for, and the keyboard's way along it; and the sentences below it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from studio.models.capacity import capacity_of
from studio.models.timeline import Lane, LongestWait, Saving, Span, Stretch, Tally
from studio.views.monitor.history_words import (
    capacity_words,
    denser_words,
    longest_words,
    saving_words,
    tally_words,
)
from studio.views.monitor.timeline_view import Picture, TimelineView
from studio.views.theme import Theme


def lane(name: str, *spans: tuple[Stretch, float, float | None, tuple[str, ...]]) -> Lane:
    return Lane(
        name,
        name,
        [Span(stretch, start, name, end, others) for stretch, start, end, others in spans],
    )


def shown(theme: Theme, page: QWidget, *lanes: Lane) -> TimelineView:
    view = TimelineView(theme, page)
    view.resize(508, 100)
    view.show_picture(Picture(lanes, now_s=160.0))
    view.show()
    return view


LANES = (
    lane(
        "Lisbon",
        (Stretch.WORKING, 100, 130, ()),
        (Stretch.PARKED, 130, 144, ("Children",)),
        (Stretch.COMING_BACK, 144, 145, ()),
        (Stretch.WORKING, 145, None, ()),
    ),
    lane("Children", (Stretch.QUEUED, 110, 120, ()), (Stretch.WORKING, 120, 150, ())),
)


def test_hovering_names_who_was_waited_for(theme: Theme, page: QWidget) -> None:
    view = shown(theme, page, *LANES)
    found = view.span_at(QPoint(208 + 150 + 20, 8))  # 60 s on 300 pixels: 5 a second
    assert found is not None
    assert found[1].stretch is Stretch.PARKED
    assert view.describe(*found) == "Lisbon: parked for 14 s, 16 s ago\nWaited for Children"
    assert view.span_at(QPoint(208 + 10, 26)) is None
    assert view.span_at(QPoint(208 + 10, 200)) is None


def test_the_first_seconds_fill_the_width(theme: Theme, page: QWidget) -> None:
    view = shown(theme, page, lane("Lisbon", (Stretch.WORKING, 150, None, ())))
    assert view.span_at(QPoint(208 + 160, 8)) is not None
    assert view.span_at(QPoint(208 + 140, 8)) is None


def test_stretches_are_drawn_in_their_own_shapes(theme: Theme, page: QWidget) -> None:
    image = shown(theme, page, *LANES).grab().toImage()
    hue, waiting = theme.hues[0].name(), theme.colors.waiting.name()

    def tall(x: int, color: str) -> int:
        return sum(image.pixelColor(x, y).name() == color for y in range(18))

    assert tall(208 + 50, hue) == 10
    assert 4 <= tall(208 + 190, waiting) <= 5
    assert tall(208 + 190, hue) == 0


def test_the_arrow_keys_walk_and_tell(
    theme: Theme, page: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, told = shown(theme, page, *LANES), list[str]()
    monkeypatch.setattr(
        QAccessible, "updateAccessibility", lambda event: told.append(event.message())
    )
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Down):
        QTest.keyClick(view, key)
    assert [one.split(",")[0].split("\n")[0] for one in told] == [
        "Lisbon: reading and writing for 15 s",
        "Lisbon: coming back for 1 s",
        "Lisbon: parked for 14 s",
        "Children: reading and writing for 30 s",
    ]


def test_more_lanes_than_fit_leave_the_latest(theme: Theme, page: QWidget) -> None:
    many = [lane(f"r{n}", (Stretch.WORKING, 100 + n, 101 + n, ())) for n in range(20)]
    view = TimelineView(theme, page)
    view.set_most_lanes(5)
    view.show_picture(Picture(tuple(many), now_s=160.0))
    found = view.span_at(QPoint(view.width() - 1, 0))
    assert found is None
    assert view.height() == 5 * 18 + 18
    assert [one.name for one in view.lanes] == ["r15", "r16", "r17", "r18", "r19"]


def test_the_sentences() -> None:
    assert longest_words(None) == ""
    assert longest_words(LongestWait("Children", 14.2, ("Lisbon",))) == (
        "Longest wait: Children, 14 s, for Lisbon"
    )
    assert longest_words(LongestWait("Children", 14.2, ())) == "Longest wait: Children, 14 s"
    assert tally_words(Tally()) == ""
    assert tally_words(Tally(12, 11)) == "Of 12 waits 11 ended within what was said"
    assert tally_words(Tally(2, 2)) == "Both waits so far ended within what was said"
    assert tally_words(Tally(12, 12)) == "All 12 waits ended within what was said"
    assert tally_words(Tally(1, 0)) == "The one wait so far took longer than was said"
    assert saving_words(Saving()) == ""
    assert "at least 40 s of 55 s" in saving_words(Saving(55.0, 40.0))
    assert "saved all 55 s" in saving_words(Saving(55.0, 54.9))
    assert denser_words(Saving(55.0, 0.0)) == ""
    assert denser_words(Saving(55.0, 20.0)) == (
        "Keys and values as Q8_0 would have saved at least 20 s of it"
    )
    assert "none of 55 s" in saving_words(Saving(55.0, 0.0))


@pytest.mark.parametrize(
    ("pool", "parallel", "can_park", "words"),
    [
        (8192, 8, True, "4 chats of 2,000 tokens fit, a fifth would park"),
        (
            1 << 15,
            4,
            True,
            "16 chats of 2,000 tokens fit, “Requests at once” is 4: a fifth would wait in line",
        ),
        (2048, 4, False, "1 chat of 2,000 tokens fits, a second would end for want of room"),
        (1 << 16, 99, True, "32 chats of 2,000 tokens fit, one more would park"),
        (1024, 4, True, "Not even one chat of 2,000 tokens fits"),
    ],
)
def test_capacity_in_chats(pool: int, parallel: int, *, can_park: bool, words: str) -> None:
    found = capacity_of(pool, chat_tokens=2000, parallel=parallel, can_park=can_park)
    assert capacity_words(found) == words
