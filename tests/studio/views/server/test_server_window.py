"""The window of the server: a taken port handled in place, a restart that ends nobody unasked, text to paste."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QPushButton

from fakes.fake_window import PretendServer, open_stage, until
from fakes.server_stage import open_server, press, put_row, words_of
from fakes.shots import shoot
from studio.models.errors import PortTaken, ServerStartError
from studio.models.request_log import RequestState
from studio.models.server_keys import KeyPlan
from studio.models.snippets import SNIPPETS
from studio.services.server_service import ServerState
from studio.views.error_words import error_sentence
from studio.views.monitor.status_line import StatusLine
from studio.views.server.server_window import ServerPages
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
TAKEN = PortTaken(
    "port 8484 on 127.0.0.1 is taken by another program; choose another, or 0 for a free one",
    port=8484,
    free_port=8485,
)


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
            first, _ = put_row(stage, "chatcmpl-a"), put_row(stage, "chatcmpl-b")
            page.switch.click()
            box = page.findChild(QMessageBox)
            assert box.text() == tr("{count} requests are being answered.").format(count=2)
            press(box, tr("Finish first"))
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
            put_row(stage, "chatcmpl-a")
            stage.services.settings.change("server.cors_origins", "https://a.example")
            window.server.restart.click()
            box = window.server.findChild(QMessageBox)
            assert box.text() == "1 request is being answered."
            assert stage.server.needs_restart
            press(box, "Start again")
            await until(
                lambda: stage.server.state is ServerState.ON and not stage.server.needs_restart
            )

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
            put_row(stage, "chatcmpl-a")
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
