"""Keys of the server: a secret is shown once, and not lost before it was copied."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox, QPushButton

from fakes.fake_window import until
from fakes.server_stage import answer, open_server, press, words_of
from studio.models.server_keys import Lane
from studio.views.server.server_window import ServerPages

Play = Callable[[Coroutine[Any, Any, None]], None]


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
            answer(keys, "Revoke")
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
            press(box, "Close")
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
            answer(keys, "Revoke")
            assert keys.secret.isHidden()
            QTest.keyClick(window, Qt.Key.Key_Escape)
            assert stage.window.server_window.dialog is None

    play(story())
