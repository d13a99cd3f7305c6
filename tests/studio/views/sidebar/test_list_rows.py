"""The rows of the list as data: sections by day, folders in folders, and changes that move as little as possible."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pytest
from PySide6.QtCore import QAbstractListModel, QModelIndex
from PySide6.QtTest import QAbstractItemModelTester

from studio.models.chat import Conversation
from studio.models.folder import Folder
from studio.models.search_hit import Snippet
from studio.views.sidebar.list_rows import (
    ChatRow,
    FolderRow,
    HeaderRow,
    Row,
    Section,
    heading,
    rows_of,
    section_by_day,
)
from studio.views.sidebar.list_search import words_in
from studio.views.sidebar.row_changes import apply_changes
from studio.views.sidebar.snippet_line import runs_of

NOW = datetime(2026, 11, 30, 9, 0)


def chat(title: str, **marks: object) -> Conversation:
    made = Conversation(hash(title) % 1_000_000 + 1, title, 0.0, NOW.timestamp())
    for name, value in marks.items():
        setattr(made, name, value)
    return made


def shown(rows: Iterable[Row]) -> list[str]:
    lines = []
    for row in rows:
        if isinstance(row, HeaderRow):
            lines.append(f"# {heading(row.section)}")
        elif isinstance(row, FolderRow):
            lines.append(f"{' ' * row.depth}[{row.folder.name}] {row.num_chats}")
        elif isinstance(row, ChatRow):
            lines.append(f"{' ' * row.depth}{row.chat.title}")
    return lines


def test_every_chat_stands_in_one_place_and_archived_ones_in_none() -> None:
    folders = {
        1: Folder(folder_id=1, name="Work", place=1),
        2: Folder(folder_id=2, name="Bills", parent_id=1),
        3: Folder(folder_id=3, name="Home", place=0, is_open=False),
    }
    chats = [
        chat("loose"),
        chat("pinned", is_pinned=True, folder_id=1),
        chat("work", folder_id=1),
        chat("bill", folder_id=2),
        chat("at home", folder_id=3),
        chat("gone", is_archived=True, is_pinned=True),
    ]
    assert shown(rows_of(chats, folders, (), now_s=NOW.timestamp())) == [
        *("# Pinned", "pinned"),
        *("# Folders", "[Home] 1", "[Work] 2", " [Bills] 1", "  bill", " work"),
        *("# Today", "loose"),
    ]


def test_days_are_those_of_the_calendar_here() -> None:
    section = section_by_day(NOW.timestamp())
    for moment, expected in (
        (datetime(2026, 11, 30, 0, 0), Section.TODAY),
        (datetime(2026, 12, 1, 1, 0), Section.TODAY),
        (datetime(2026, 11, 29, 23, 59), Section.YESTERDAY),
        (datetime(2026, 11, 28, 23, 59), Section.WEEK),
        (datetime(2026, 11, 24, 0, 0), Section.WEEK),
        (datetime(2026, 11, 23, 23, 0), Section.MONTH),
        (datetime(2026, 11, 1, 0, 0), Section.MONTH),
        (datetime(2026, 10, 31, 23, 0), Section.EARLIER),
        (datetime(2026, 12, 2, 0, 0), Section.EARLIER),
        (datetime(5138, 11, 16), Section.EARLIER),
    ):
        assert section(moment.timestamp()) is expected, moment


def test_no_heading_stands_twice_whatever_clocks_have_said() -> None:
    now_s, day_s = NOW.timestamp(), 24 * 3600.0
    ages = (0, 9, 1, -1000, 0, 40, -1)
    chats = [chat(f"{age} days", updated_s=now_s - age * day_s) for age in ages]
    rows = shown(rows_of(chats, {}, (), now_s=now_s))
    assert rows == [
        *("# Today", "0 days", "# Last 30 days", "9 days", "1 days"),
        *("# Earlier", "-1000 days", "0 days", "40 days", "-1 days"),
    ]


@dataclass(frozen=True)
class Item:
    name: str
    version: int = 0

    @property
    def key(self) -> tuple[str, object]:
        return "item", self.name


class Items(QAbstractListModel):
    """A model of items and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Item] = []

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: QModelIndex, role: int = 0) -> object:
        return self.rows[index.row()].name if role == 0 else None


def test_any_change_of_rows_is_told_truly() -> None:
    """Qt's own tester watches; a moved row keeps its persistent index."""
    dice, model = random.Random(7), Items()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    for step in range(300):
        names = dice.sample("abcdefghijklmnop", dice.randrange(0, 12))
        kept = {row.name: index for row, index in _persistent(model)}
        new = [Item(name, dice.randrange(2)) for name in names]
        apply_changes(model, model.rows, new)
        assert model.rows == new, step
        for name, index in kept.items():
            assert index.isValid() == (name in names)
            if index.isValid():
                assert index.data() == name
    assert tester.model() is model


def _persistent(model: Items) -> list[tuple[Item, object]]:
    from PySide6.QtCore import QPersistentModelIndex

    return [
        (row, QPersistentModelIndex(model.index(place))) for place, row in enumerate(model.rows)
    ]


def test_the_first_hit_of_a_snippet_is_near_its_beginning() -> None:
    text = "a long beginning that nobody asked for, then the needle and more needles"
    first, second = text.index("needle"), text.rindex("needle")
    runs = runs_of(Snippet(text=text, marks=((first, first + 6), (second, second + 6))))
    assert runs[0] == ("…", False)
    assert [piece for piece, is_hit in runs if is_hit] == ["needle", "needle"]
    assert len(runs[1][0]) <= 18
    assert "".join(piece for piece, _ in runs[1:]) in text
    assert runs_of(Snippet(text="no hit")) == [("no hit", False)]


@pytest.mark.parametrize(
    ("query", "marked", "words"),
    [
        ("lis", ["Lisbon", "lissabon"], ("lis",)),
        ("cafe lis", ["Café", "Lisbon"], ("Café", "lis")),
        ("cafe", ["Café", "cafe"], ("cafe",)),
        ("trip (to", ["trip"], ("trip", "to")),
        ("面", ["面"], ("面",)),
    ],
)
def test_words_are_marked_as_they_stand_in_the_text(
    query: str, marked: list[str], words: tuple[str, ...]
) -> None:
    text, marks = "", []
    for one in marked:
        marks.append((len(text), len(text) + len(one)))
        text += one + " "
    assert words_in(query, Snippet(text=text, marks=tuple(marks))) == words


def test_many_rows_go_come_and_change_places_in_one_step_each() -> None:
    model, steps = Items(), []
    for signal in (model.rowsRemoved, model.rowsInserted, model.rowsMoved, model.layoutChanged):
        signal.connect(lambda *_: steps.append(1))
    apply_changes(model, model.rows, [Item(str(number)) for number in range(500)])
    kept = [Item(str(number)) for number in range(499, 99, -1)]
    apply_changes(model, model.rows, [*kept, *(Item(f"new {number}") for number in range(100))])
    assert [row.name for row in model.rows[:2]] == ["499", "498"]
    assert len(steps) == 4
