"""The pool and the memory of parked chats in pieces: each page once, shared ones with all hues, words for each."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from engine.api import EngineSnapshot, PoolUsage
from engine.runs import Holding, ParkUsage, RunState
from fakes.runs import make_run, make_wait
from studio.views.monitor.pool_map import PoolMap
from studio.views.monitor.segments import Kind, Segment, memory_segments, pool_segments
from studio.views.run_sentences import Others
from studio.views.theme import Theme

POOL = PoolUsage(
    total_pages=64, free_pages=10, reusable_pages=8, page_tokens=32, page_bytes=1 << 20
)
OTHERS = Others(names={"a": "Lisbon", "b": "Children"}, hues={"a": 3, "b": 5})


def held(pages: int, *ids: str) -> Holding:
    return Holding(request_ids=ids, pages=pages)


def snapshot_of(*holdings: Holding) -> EngineSnapshot:
    return EngineSnapshot(pool=POOL, holdings=holdings)


def test_pieces_are_the_holdings_then_what_moves_is_kept_and_is_free() -> None:
    found = pool_segments(snapshot_of(held(4, "a", "b"), held(20, "a"), held(20, "b")), OTHERS)
    assert [(one.kind, one.size, one.hues) for one in found] == [
        (Kind.HELD, 4, (3, 5)),
        (Kind.HELD, 20, (3,)),
        (Kind.HELD, 20, (5,)),
        (Kind.MOVING, 2, ()),
        (Kind.KEPT, 8, ()),
        (Kind.FREE, 10, ()),
    ]
    assert sum(one.size for one in found) == POOL.total_pages
    assert [one.words for one in found] == [
        "Lisbon and Children share 128 tokens",
        "Lisbon holds 640 tokens",
        "Children holds 640 tokens",
        "64 tokens are on their way in or out",
        "256 tokens keep beginnings that may be used again",
        "320 tokens are free",
    ]
    assert pool_segments(EngineSnapshot(), OTHERS) == ()


def test_parked_states_fill_the_budget_by_their_owners() -> None:
    runs = (
        replace(make_run("a", RunState.PARKED, wait=make_wait()), kept_pages=20),
        replace(make_run("b", RunState.PARKED, wait=make_wait()), kept_pages=10),
        make_run("c"),
    )
    parks = ParkUsage(budget_bytes=100 << 20, used_bytes=32 << 20)
    snapshot = EngineSnapshot(pool=POOL, runs=runs, parks=parks)
    found = memory_segments(snapshot, OTHERS)
    assert [(one.kind, one.size >> 20) for one in found] == [
        (Kind.HELD, 20), (Kind.HELD, 10), (Kind.MOVING, 2), (Kind.FREE, 68),
    ]  # fmt: skip
    assert found[0].words == "Lisbon: 20 MB set aside"
    shared = replace(snapshot, parks=replace(parks, used_bytes=15 << 20, budget_bytes=-1))
    assert [one.size >> 20 for one in memory_segments(shared, OTHERS)] == [10, 5]


def test_the_map_draws_each_page_in_its_owners_hue_and_stripes_what_is_shared(
    theme: Theme, page: QWidget
) -> None:
    drawn = PoolMap("Pool", theme, page)
    drawn.resize(11 * 16, 100)
    drawn.show_segments(
        (Segment(Kind.HELD, 16, (3, 5)), Segment(Kind.HELD, 16, (3,)), Segment(Kind.FREE, 32)), ""
    )
    drawn.show()
    image = drawn.grab().toImage()
    row = {image.pixelColor(x, 4).name() for x in range(11 * 16)}
    assert {theme.hues[3].name(), theme.hues[5].name()} <= row
    assert {image.pixelColor(11 * n + 4, 15).name() for n in range(16)} == {theme.hues[3].name()}
    assert image.pixelColor(4, 26).name() == theme.colors.track.name()
    assert drawn.segment_at(QPoint(4, 15)).hues == (3,)
    assert drawn.segment_at(QPoint(11 * 16 + 3, 4)) is None


def test_a_small_pool_has_wide_cells_from_edge_to_edge(theme: Theme, page: QWidget) -> None:
    drawn = PoolMap("Pool", theme, page)
    drawn.resize(308, 50)
    drawn.show_segments((Segment(Kind.HELD, 4, (1,)), Segment(Kind.FREE, 3)), "")
    drawn.show()
    image = drawn.grab().toImage()
    assert image.pixelColor(1, 4).name() == theme.hues[1].name()
    assert image.pixelColor(307, 4).name() == theme.colors.track.name()
    assert drawn.height() == 11
    assert drawn.segment_at(QPoint(4 * 44 - 4, 4)).kind is Kind.HELD
    assert drawn.segment_at(QPoint(4 * 44 + 4, 4)).kind is Kind.FREE


def test_a_large_pool_has_several_pages_a_cell_and_stays_small(theme: Theme, page: QWidget) -> None:
    drawn = PoolMap("Pool", theme, page)
    drawn.resize(308, 50)
    drawn.show_segments((Segment(Kind.HELD, 30_000, (1,)), Segment(Kind.FREE, 3_000)), "")
    assert drawn.pages_per_cell > 100
    assert drawn.height() <= 5 * 11
    drawn.grab()


def test_pieces_are_walked_by_keyboard_and_chosen(theme: Theme, page: QWidget) -> None:
    drawn = PoolMap("Pool", theme, page)
    drawn.resize(308, 50)
    chosen: list[str] = []
    drawn.chosen.connect(chosen.append)
    drawn.show_segments(
        (Segment(Kind.HELD, 4, (1,), "a", ("a",)), Segment(Kind.HELD, 4, (2,), "b", ("b",)),
         Segment(Kind.FREE, 4, words="free")), "",
    )  # fmt: skip
    drawn.show()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Return, Qt.Key.Key_Right):
        QTest.keyClick(drawn, key)
    QTest.keyClick(drawn, Qt.Key.Key_Return)
    assert chosen == ["b"], "what is free has no chat to go to"
    QTest.mouseClick(drawn, Qt.MouseButton.LeftButton, pos=QPoint(4, 4))
    assert chosen == ["b", "a"]
