"""Requests of the server: rows that follow the engine, a thousand of them, and a chosen one that stays."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt

from engine.runs import RunState
from fakes.fake_window import until
from fakes.runs import make_run, make_wait
from fakes.server_stage import open_server, put_row
from fakes.shots import lay_out, shoot
from studio.models.request_log import MOST_ROWS
from studio.views.server.requests_model import Column
from studio.views.server.server_window import ServerPages
from studio.views.words import seconds, tr

Play = Callable[[Coroutine[Any, Any, None]], None]


def test_rows_follow_what_the_engine_says_and_a_thousand_do_no_harm(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            for _ in range(1000):
                put_row(stage, took_s=1.0)
            put_row(stage, "chatcmpl-a")
            put_row(stage, "chatcmpl-b")
            window.show_page(ServerPages.REQUESTS)
            stage.engine.publish(
                make_run("chatcmpl-a", RunState.WRITING),
                make_run("chatcmpl-b", RunState.PARKED, wait=make_wait()),
            )
            model = window.requests.model

            def cell(place: int, column: Column) -> object:
                return model.data(model.index(place, column))

            await until(lambda: str(cell(0, Column.STATE)).startswith(tr("Parked")))
            assert model.rowCount() == 1000
            shoot(window, "s17-a-thousand-requests")
            assert cell(1, Column.STATE) == tr("Writing")
            assert cell(1, Column.TOKENS) == "300 + 340"
            assert cell(2, Column.STATE) == tr("Done")
            assert cell(2, Column.DURATION) == seconds(1.0)
            window.requests.clear.click()
            assert model.rowCount() == 2

    play(story())


def test_a_narrow_table_gives_columns_up_and_the_detail_tells_them(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            put_row(stage, took_s=1.0, error="no such path")
            window.show_page(ServerPages.REQUESTS)
            page = window.requests
            table, model = page.table, page.model

            def shown(width: int) -> set[Column]:
                window.resize(width, 352)
                lay_out()
                widths = [table.columnWidth(column) for column in Column]
                assert sum(widths) <= table.viewport().width()
                assert table.columnWidth(Column.REQUEST) > table.fontMetrics().horizontalAdvance(
                    "POST /v1/chat/completions"
                )
                return {column for column in Column if not table.isColumnHidden(column)}

            assert shown(1000) == set(Column)
            assert shown(624) == {Column.CLIENT, Column.REQUEST, Column.STATE}
            assert shown(1000) == set(Column)
            assert page.detail.isHidden()
            table.selectRow(0)
            words = page.detail.toPlainText()
            for column in Column:
                assert str(model.index(0, column).data()) in words
            assert "no such path" in words
            tip = model.index(0, Column.REQUEST).data(Qt.ItemDataRole.ToolTipRole)
            assert tip == "POST /v1/chat/completions\nno such path"

    play(story())


def test_a_chosen_row_stays_chosen_while_others_come_and_go(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            window.show_page(ServerPages.REQUESTS)
            page = window.requests
            first, chosen = put_row(stage, took_s=1.0), put_row(stage, took_s=1.0)
            page.refresh()
            page.table.selectRow(0)
            put_row(stage)
            put_row(stage)
            page.refresh()
            assert page.model.row_at(page.table.currentIndex()) is chosen
            assert not page.detail.isHidden()
            for _ in range(MOST_ROWS - 3):  # pushes the first one out
                put_row(stage)
            page.refresh()
            assert page.model.row_at(page.table.currentIndex()) is chosen
            assert first not in stage.server.log.rows
            assert page.model.rowCount() == MOST_ROWS
            page.clear.click()
            assert page.detail.isHidden()
            assert not page.clear.isEnabled(), "what runs stays"

    play(story())
