"""The window of the server: a taken port handled in place, keys shown once, a thousand rows, text to paste."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton, QWidget

from engine.runs import RunState
from fakes.fake_window import PretendServer, Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import shoot
from studio.models.errors import PortTaken, ServerStartError
from studio.models.request_log import MOST_ROWS, RequestRow, RequestState
from studio.models.server_keys import KeyPlan, Lane
from studio.models.snippets import SNIPPETS
from studio.services.server_service import ServerState
from studio.views.actions import CommandId
from studio.views.error_words import error_sentence
from studio.views.monitor.status_line import StatusLine
from studio.views.server.requests_model import Column
from studio.views.server.server_window import ServerPages, ServerWindow
from studio.views.words import seconds, tr

Play = Callable[[Coroutine[Any, Any, None]], None]
TAKEN = PortTaken(
    "port 8484 on 127.0.0.1 is taken by another program; choose another, or 0 for a free one",
    port=8484,
    free_port=8485,
)


@pytest.fixture(autouse=True)
def _willing() -> Iterator[None]:
    yield
    PretendServer.refusal = None


@asynccontextmanager
async def open_server(tmp_path: Path) -> AsyncIterator[tuple[Stage, ServerWindow]]:
    async with open_stage(tmp_path, titles=("A",)) as stage:
        stage.window.commands[CommandId.SERVER].trigger()
        window = stage.window.server_window.dialog
        assert isinstance(window, ServerWindow)
        yield stage, window


def words_of(widget: QWidget) -> str:
    return " ".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


def row(stage: Stage, *runs: str, took_s: float | None = None, error: str = "") -> RequestRow:
    log, started_s = stage.server.log, time.time()
    made = RequestRow(
        row_id=log.new_id(),
        started_s=started_s,
        method="POST",
        path="/v1/chat/completions",
        client="editor",
        run_ids=runs,
        ended_s=started_s + took_s if took_s is not None else None,
        state=RequestState.RUNNING if took_s is None else RequestState.DONE,
        error=error,
    )
    log.put(made)
    return made


def test_a_taken_port_is_said_in_place_with_another_to_take(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            page = window.server
            PretendServer.refusal = TAKEN
            page.switch.click()
            await until(lambda: not page.way_on.isHidden())
            assert error_sentence(TAKEN) in words_of(page)
            assert page.way_on.text() == tr("Use port {port}").format(port=8485)
            shoot(window, "s17-port-taken")
            PretendServer.refusal = None
            page.way_on.click()
            await until(lambda: stage.server.state is ServerState.ON)
            assert stage.services.settings.settings.server.port == 8485
            assert page.way_on.isHidden()
            reach = tr("Programs reach it at {address}")
            assert reach.format(address="http://127.0.0.1:8484/v1") in words_of(page)

    play(story())


def test_stopping_with_requests_under_way_offers_to_finish_first(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            page = window.server
            await stage.server.start()
            first, _ = row(stage, "chatcmpl-a"), row(stage, "chatcmpl-b")
            page.switch.click()
            box = page.findChild(QMessageBox)
            assert box.text() == tr("{count} requests are being answered.").format(count=2)
            next(b for b in box.buttons() if b.text() == tr("Finish first")).click()
            await until(lambda: stage.server.state is ServerState.FINISHING)
            words = tr("It takes no more requests. {count} are still being answered.")
            assert words.format(count=2) in words_of(page)
            shoot(window, "s17-finishing")
            stage.server.log.put(replace(first, state=RequestState.DONE, ended_s=time.time()))
            words = tr("It takes no more requests. 1 is still being answered.")
            await until(lambda: words in words_of(page))
            page.now.click()
            await until(lambda: stage.server.state is ServerState.OFF)

    play(story())


def test_an_address_for_others_needs_a_key_and_says_so(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            stage.services.settings.change("server.host", "0.0.0.0")
            page = window.server
            assert "programs need a key" in words_of(page)
            assert (page.way_on.isHidden(), page.way_on.text()) == (False, tr("Make a key"))
            stage.services.settings.reset("server.host")
            await stage.server.start()
            stage.services.settings.change("server.host", "0.0.0.0")
            assert page.restart.isHidden(), "it would end, and not come back"
            stage.server.keys.create(KeyPlan(name="phone"))
            assert "Other computers in your network can reach it, with a key." in words_of(page)
            assert page.way_on.isHidden()
            assert not page.restart.isHidden()

    play(story())


def test_that_a_key_is_missing_is_said_once_and_no_more_once_there_is_one(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            page, needed = window.server, "needs a key"
            stage.services.settings.change("server.host", "0.0.0.0")
            PretendServer.refusal = ServerStartError(f"0.0.0.0 {needed}; make one")
            page.switch.click()
            await until(lambda: stage.server.problem is not None)
            assert error_sentence(PretendServer.refusal) in words_of(page)
            assert words_of(page).count("0.0.0.0") == 1
            assert page.way_on.text() == tr("Make a key")
            stage.server.keys.create(KeyPlan(name="phone"))
            assert needed not in words_of(page)
            assert page.way_on.isHidden()
            assert not stage.services.notices.notices.notices

    play(story())


def test_a_taken_port_is_no_matter_once_another_is_set(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            PretendServer.refusal = TAKEN
            await stage.server.start()
            stage.services.settings.change("appearance.text_size", 15)
            assert not window.server.way_on.isHidden(), "that has nothing to do with it"
            stage.services.settings.change("server.port", 9000)
            assert window.server.way_on.isHidden()
            assert stage.server.problem is None

    play(story())


def test_changed_settings_offer_a_new_start(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            await stage.server.start()
            assert window.server.restart.isHidden()
            stage.services.settings.change("server.cors_origins", "https://a.example")
            assert not window.server.restart.isHidden()
            window.server.restart.click()
            await until(
                lambda: stage.server.state is ServerState.ON and not stage.server.needs_restart
            )

    play(story())


def test_a_new_start_ends_no_request_unasked(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            await stage.server.start()
            row(stage, "chatcmpl-a")
            stage.services.settings.change("server.cors_origins", "https://a.example")
            window.server.restart.click()
            box = window.server.findChild(QMessageBox)
            assert box.text() == "1 request is being answered."
            assert stage.server.needs_restart
            next(b for b in box.buttons() if b.text() == "Start again").click()
            await until(
                lambda: stage.server.state is ServerState.ON and not stage.server.needs_restart
            )

    play(story())


def test_a_keys_secret_is_shown_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            window.show_page(ServerPages.KEYS)
            keys = window.keys
            keys.form.name.setText("agent")
            keys.form.lane.setCurrentIndex(keys.form.lane.findData(Lane.BACKGROUND))
            keys.form.share.setValue(50)
            keys.form.most.setValue(2)
            keys.form.make.click()
            (key,) = stage.server.keys.keys
            assert (key.lane, key.share_percent, key.max_requests) == (Lane.BACKGROUND, 50, 2)
            secret = keys.secret.field.text()
            assert stage.server.keys.caller(secret) is not None
            assert secret in window.connect_page.text.toPlainText()
            said = words_of(keys)
            for part in ("Background", "up to 50% of the pool", "up to 2 requests", key.hint):
                assert part in said
            keys.secret.findChild(QPushButton).click()
            assert QGuiApplication.clipboard().text() == secret
            window.show_page(ServerPages.SERVER)
            assert keys.secret.field.text() == ""
            keys.form.make.click()
            assert "0 characters" in words_of(keys)
            keys.revoke(key)
            box = keys.findChild(QMessageBox)
            next(b for b in box.buttons() if b.text() == "Revoke").click()
            assert stage.server.keys.keys == ()

    play(story())


def test_a_key_that_was_not_copied_is_not_lost_by_escape_another_page_or_another_key(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            window.show_page(ServerPages.KEYS)
            keys = window.keys
            keys.form.name.setText("agent")
            keys.form.make.click()
            secret = keys.secret.field.text()
            window.show_page(ServerPages.SERVER)
            QTest.keyClick(window, Qt.Key.Key_Escape)
            box = window.findChild(QMessageBox)
            assert "agent" in box.text()
            QTest.keyClick(box, Qt.Key.Key_Escape)
            await until(lambda: not window.findChildren(QMessageBox))
            assert window.isVisible()
            assert keys.secret.isVisible()
            keys.form.name.setText("another")
            keys.form.make.click()
            assert "Copy the key “agent” first" in words_of(keys)
            assert (keys.secret.field.text(), len(stage.server.keys.keys)) == (secret, 1)
            window.connect_page.copy.click()  # its text holds the key
            keys.form.make.click()
            assert len(stage.server.keys.keys) == 2
            window.close()
            box = window.findChild(QMessageBox)
            assert window.isVisible()
            next(b for b in box.buttons() if b.text() == "Close").click()
            await until(lambda: stage.window.server_window.dialog is None)

    play(story())


def test_the_key_of_a_revoked_secret_is_shown_no_longer(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            window.show_page(ServerPages.KEYS)
            keys = window.keys
            keys.form.name.setText("agent")
            keys.form.make.click()
            keys.revoke(stage.server.keys.keys[0])
            box = keys.findChild(QMessageBox)
            next(b for b in box.buttons() if b.text() == "Revoke").click()
            assert keys.secret.isHidden()
            QTest.keyClick(window, Qt.Key.Key_Escape)
            assert stage.window.server_window.dialog is None

    play(story())


def test_rows_follow_what_the_engine_says_and_a_thousand_do_no_harm(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            for _ in range(1000):
                row(stage, took_s=1.0)
            row(stage, "chatcmpl-a")
            row(stage, "chatcmpl-b")
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
            row(stage, took_s=1.0, error="no such path")
            window.show_page(ServerPages.REQUESTS)
            page = window.requests
            table, model = page.table, page.model

            def shown(width: int) -> set[Column]:
                window.resize(width, 352)
                QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
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
            first, chosen = row(stage, took_s=1.0), row(stage, took_s=1.0)
            page.refresh()
            page.table.selectRow(0)
            row(stage)
            row(stage)
            page.refresh()
            assert page.model.row_at(page.table.currentIndex()) is chosen
            assert not page.detail.isHidden()
            for _ in range(MOST_ROWS - 3):  # pushes the first one out
                row(stage)
            page.refresh()
            assert page.model.row_at(page.table.currentIndex()) is chosen
            assert first not in stage.server.log.rows
            assert page.model.rowCount() == MOST_ROWS
            page.clear.click()
            assert page.detail.isHidden()
            assert not page.clear.isEnabled(), "what runs stays"

    play(story())


def test_what_to_paste_has_address_key_and_model_filled_in(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            page = window.connect_page
            window.show_page(ServerPages.CONNECT)
            await stage.server.start()
            for place, snippet in enumerate(SNIPPETS):
                page.program.setCurrentIndex(place)
                text = page.text.toPlainText()
                assert "http://127.0.0.1:8484" in text, snippet.program
                assert "$" not in text
            page.program.setCurrentIndex(0)
            assert 'model="tiny"' in page.text.toPlainText()
            stage.server.keys.create(KeyPlan(name="x"))
            assert 'api_key="YOUR-KEY"' in page.text.toPlainText()
            for place in range(page.program.count()):
                page.program.setCurrentIndex(place)
                stands = "YOUR-KEY" in page.text.toPlainText()
                assert stands is ("YOUR-KEY" in words_of(page)), page.program.currentText()
            page.program.setCurrentIndex(0)
            page.copy.click()
            assert QGuiApplication.clipboard().text() == page.text.toPlainText()

    play(story())


def test_the_status_lines_menu_stops_no_request_unasked(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            await stage.server.start()
            row(stage, "chatcmpl-a")
            line = stage.window.findChild(StatusLine)
            button = next(b for b in line.findChildren(QPushButton) if "Server" in b.text())
            button.click()
            line.server_menu.actions()[-1].trigger()
            await until(lambda: stage.window.server_window.dialog is not None)
            assert stage.server.state is ServerState.ON

    play(story())


def test_starting_the_server_leaves_the_keyboard_at_its_switch(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_server(tmp_path) as (stage, window):
            switch = window.server.switch
            switch.setFocus()
            switch.click()
            await until(lambda: stage.server.state is ServerState.ON)
            assert window.focusWidget() is switch

    play(story())
