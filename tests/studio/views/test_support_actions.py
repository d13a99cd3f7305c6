"""The log bundle is shown before it is saved, and everything goes only after a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QWidget,
)
from shiboken6 import isValid

from fakes.fake_window import open_stage, until
from studio import __version__
from studio.services.notice_service import UNEXPECTED_NOTICE
from studio.services.support_service import Stored, StoredKind, SupportService
from studio.views.actions import CommandId
from studio.views.dialogs.about import AboutDialog
from studio.views.settings.privacy_page import PrivacyPage

Play = Callable[[Coroutine[Any, Any, None]], None]


def test_the_settings_may_be_closed_while_the_page_of_privacy_measures(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_closed = asyncio.Event()

    async def late(_service: SupportService) -> tuple[Stored, ...]:
        await is_closed.wait()
        return (Stored(kind=StoredKind.CHATS, path=tmp_path, size_bytes=1),)

    async def story() -> None:
        monkeypatch.setattr(SupportService, "stored", late)
        async with open_stage(tmp_path) as stage:
            stage.window.commands[CommandId.SETTINGS].trigger()
            dialog = stage.window.settings_window.dialog
            await until(lambda: stage.window.context.tasks.num_running)
            dialog.close()
            await until(lambda: not isValid(dialog))
            is_closed.set()
            await until(lambda: not stage.window.context.tasks.num_running)
            assert not stage.services.notices.notices.notices

    play(story())


def test_a_bundle_is_read_and_then_saved(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "logs").mkdir()
        (tmp_path / "logs" / "layby.log").write_text("one line of the log\n")
        async with open_stage(tmp_path) as stage:
            stage.window.commands[CommandId.LOG_BUNDLE].trigger()
            await until(lambda: stage.window.app.support.dialog)
            dialog = stage.window.app.support.dialog
            assert dialog is not None
            names = [dialog.names.item(row).text() for row in range(dialog.names.count())]
            assert [name.split("   ")[0] for name in names] == [
                "about.txt", "doctor.txt", "settings.json", "logs/layby.log",
            ]  # fmt: skip
            dialog.names.setCurrentRow(3)
            assert dialog.text.toPlainText() == "one line of the log\n"
            dialog.save.click()
            target = tmp_path / "bundle.zip"
            chooser = dialog.findChild(QFileDialog)
            chooser.fileSelected.emit(str(target))
            chooser.reject()
            await until(target.exists)
            await until(lambda: stage.window.app.support.dialog is None)

    play(story())


def test_the_version_is_told_and_copied_and_leads_to_the_bundle(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.commands[CommandId.ABOUT].trigger()
            (about,) = stage.window.findChildren(AboutDialog)
            assert any(__version__ in label.text() for label in about.findChildren(QLabel))
            about.copy.click()
            copied = QGuiApplication.clipboard().text()
            assert copied.startswith(f"Layby {__version__}\n")
            assert "Python" in copied
            about.bundle.click()
            await until(lambda: stage.window.app.support.dialog)
            dialog = stage.window.app.support.dialog
            assert dialog is not None
            dialog.reject()

    play(story())


def test_a_notice_of_the_unexpected_leads_to_the_bundle(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.services.notices.show(UNEXPECTED_NOTICE)
            stage.services.notices.show(UNEXPECTED_NOTICE)
            assert len(stage.services.notices.notices.notices) == 1
            stage.window.notice_bar.action_wanted.emit(UNEXPECTED_NOTICE)
            await until(lambda: stage.window.app.support.dialog)
            dialog = stage.window.app.support.dialog
            assert dialog is not None
            dialog.reject()

    play(story())


def nameless(window: QWidget) -> list[str]:
    """Controls on screen that a screen reader could not name."""
    kinds = (QAbstractButton, QLineEdit, QAbstractItemView, QPlainTextEdit, QScrollArea)
    found = []
    for widget in window.findChildren(QWidget):
        if isinstance(widget, kinds) and widget.isVisible():
            interface = QAccessible.queryAccessibleInterface(widget)
            name = interface.text(QAccessible.Text.Name) if interface else ""
            is_inner = widget.objectName().startswith("qt_spin")
            if not name.strip() and not is_inner:
                found.append(f"{type(widget).__name__} {widget.objectName()}")
    return found


def test_every_control_of_the_programs_own_dialogs_has_a_name(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            app = stage.window.app
            app.open_palette()
            assert nameless(app.palette) == []
            app.palette.leave()
            shortcuts = app.list_shortcuts()
            assert nameless(shortcuts) == []
            shortcuts.close()
            app.support.create_bundle()
            await until(lambda: app.support.dialog)
            assert app.support.dialog is not None
            assert nameless(app.support.dialog) == []
            app.support.dialog.reject()
            stage.window.settings_window.open()
            dialog = stage.window.settings_window.dialog
            assert dialog is not None
            for row in range(dialog.pages.count()):
                dialog.pages.setCurrentRow(row)
                await until(lambda: not stage.window.context.tasks.num_running)
                assert nameless(dialog) == []

    play(story())


def test_everything_is_deleted_only_after_a_question(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.commands[CommandId.PRIVACY].trigger()
            settings = stage.window.settings_window.dialog
            assert settings is not None
            page = settings.findChild(PrivacyPage)
            await until(
                lambda: str(tmp_path / "logs") in [x.text() for x in page.findChildren(QLabel)]
            )
            button = next(
                one for one in page.findChildren(QPushButton) if one.text() == "Delete everything…"
            )
            for answer, is_wanted in (("Cancel", False), ("Delete everything", True)):
                button.click()
                box = settings.findChildren(QMessageBox)[-1]
                next(one for one in box.buttons() if one.text() == answer).click()
                assert stage.services.support.wants_all_deleted is is_wanted
            await stage.window.wait_closed()

    play(story())
