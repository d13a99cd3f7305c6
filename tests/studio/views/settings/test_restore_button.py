"""Setting a page back: only after a yes, only what differs, and the button is off where nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QMessageBox, QPushButton, QSpinBox, QWidget

from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService
from studio.views.settings.dialog import SettingsDialog
from studio.views.settings.restore_button import RestoreButton
from studio.views.words import tr

KEYS = ("engine.ctx_size", "engine.parallel")


@pytest.fixture
def settings(tmp_path: Path) -> SettingsService:
    return SettingsService(tmp_path / "settings.json", environment={}, flags={})


@pytest.fixture
def button(page: QWidget, settings: SettingsService) -> Iterator[RestoreButton]:
    made = RestoreButton(settings, NoticeService(), page)
    made.show_keys(KEYS)
    disconnect = settings.changed.connect(lambda _settings: made.refresh())
    yield made
    disconnect()


def answer(box: QMessageBox | None, text: str) -> None:
    assert box is not None
    next(one for one in box.findChildren(QPushButton) if one.text() == tr(text)).click()


def test_it_is_off_while_nothing_differs(button: RestoreButton, settings: SettingsService) -> None:
    assert not button.isEnabled()
    settings.change("engine.parallel", 3)
    assert button.isEnabled()
    settings.reset("engine.parallel")
    assert not button.isEnabled()


def test_it_asks_first_and_names_what_it_sets_back(
    button: RestoreButton, settings: SettingsService, qtbot: Any
) -> None:
    settings.change("engine.ctx_size", 4096)
    button.click()
    assert settings.settings.engine.ctx_size == 4096
    assert button.question is not None
    assert tr("Pool size") in button.question.informativeText()
    answer(button.question, "Cancel")
    qtbot.waitUntil(lambda: button.question is None)
    assert settings.settings.engine.ctx_size == 4096
    button.click()
    answer(button.question, "Restore")
    assert settings.settings.engine.ctx_size != 4096
    assert not button.isEnabled()


def test_enter_and_escape_both_leave_everything_as_it_is(
    button: RestoreButton, settings: SettingsService
) -> None:
    settings.change("engine.ctx_size", 4096)
    button.click()
    box = button.question
    assert box is not None
    for one in (box.defaultButton(), box.escapeButton()):
        assert one is not None
        assert one.text() == tr("Cancel")


def test_what_is_on_another_page_keeps_its_value(page: QWidget, settings: SettingsService) -> None:
    dialog = SettingsDialog(settings, NoticeService(), page)
    settings.change("engine.ctx_size", 4096)
    settings.change("engine.parallel", 7)
    settings.change("appearance.text_size", 16)
    dialog.show_setting("engine.ctx_size")
    assert dialog.restore.isEnabled()
    dialog.restore.click()
    answer(dialog.restore.question, "Restore")
    assert settings.settings.engine.ctx_size != 4096
    assert dialog.rows["engine.parallel"].findChild(QSpinBox).value() != 7
    assert settings.settings.appearance.text_size == 16
    dialog.show_setting("appearance.text_size")
    assert dialog.restore.isEnabled()
