"""The settings: every one of them on a page, changed at once, fixed where a flag or variable says so."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSpinBox,
    QWidget,
)

from engine.api import EngineState
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import open_stage, until
from studio.models.engine_state import ModelStatus
from studio.models.errors import SettingError
from studio.models.park_settings import ParkPolicy
from studio.models.settings import Theme as ThemeChoice
from studio.models.settings import all_settings
from studio.services.notice_service import NoticeService, notice_for
from studio.services.settings_service import SettingsService
from studio.views.actions import CommandId
from studio.views.models.models_window import ModelsWindow
from studio.views.server.server_window import ServerWindow
from studio.views.settings.dialog import SettingsDialog
from studio.views.settings.lead_page import LeadPage
from studio.views.theme import Theme

Play = Callable[[Coroutine[Any, Any, None]], None]
MakeDialog = Callable[..., tuple[SettingsDialog, SettingsService]]


@pytest.fixture
def make_dialog(page: QWidget, tmp_path: Path) -> Iterator[MakeDialog]:
    made: list[SettingsDialog] = []

    def make(
        *, environment: dict[str, str] | None = None, flags: dict[str, Any] | None = None
    ) -> tuple[SettingsDialog, SettingsService]:
        settings = SettingsService(
            tmp_path / "settings.json", environment=environment or {}, flags=flags or {}
        )
        dialog = SettingsDialog(settings, NoticeService(), page)
        dialog.show()
        made.append(dialog)
        return dialog, settings

    yield make
    for dialog in made:
        dialog.close()


def shown(dialog: SettingsDialog, key: str) -> str:
    """Every sentence on screen in a setting's row."""
    labels = dialog.rows[key].findChildren(QLabel)
    return " ".join(label.text() for label in labels if not label.isHidden())


def test_every_setting_but_those_for_tests_has_one_place(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            window = stage.window
            for opener in (window.settings_window, window.server_window, window.models_window):
                opener.open()
            dialog, server = window.settings_window.dialog, window.server_window.dialog
            assert dialog is not None
            assert isinstance(server, ServerWindow)
            places = [*dialog.rows, *server.server.rows]
            assert len(places) == len(set(places))
            sources = {one.key for one in all_settings() if one.group == "sources"}
            every = {one.key for one in all_settings() if not one.info.is_hidden}
            assert set(places) == every - sources

    play(story())


def test_a_setting_of_another_window_is_shown_there_and_a_page_leads_to_it(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            settings = stage.window.settings_window
            settings.open(setting="server.port")
            assert settings.dialog is None
            server = stage.window.server_window.dialog
            assert isinstance(server, ServerWindow)
            port = server.server.rows["server.port"].findChild(QSpinBox)
            assert port.window().focusWidget() is port
            settings.open(setting="sources.hub")
            models = stage.window.models_window.dialog
            assert isinstance(models, ModelsWindow)
            assert models.focusWidget() is models.sources.hub.switch
            settings.open(page="Server")
            assert settings.dialog is not None
            assert settings.dialog.pages.currentItem().text() == "Server"
            server.close()
            await until(lambda: stage.window.server_window.dialog is None)
            for page in settings.dialog.findChildren(LeadPage):
                page.button.click()
            assert stage.window.server_window.dialog is not None

    play(story())


def test_a_number_that_stands_for_something_else_says_for_what(make_dialog: MakeDialog) -> None:
    dialog, settings = make_dialog()
    number = dialog.rows["engine.idle_unload_min"].findChild(QSpinBox)
    assert number.text() == "never"
    settings.change("engine.idle_unload_min", 5)
    assert number.text() == "5 min"


def test_the_budget_and_the_policy_are_changed_at_once(make_dialog: MakeDialog) -> None:
    dialog, settings = make_dialog()
    seen: list[object] = []
    settings.changed.connect(lambda now: seen.append((now.park.ram_mib, now.park.policy)))
    number = dialog.rows["park.ram_mib"].findChild(QSpinBox)
    assert number.minimum() == -1
    number.setFocus()
    number.selectAll()
    QTest.keyClicks(number, "512")
    assert seen == []
    QTest.keyClick(number, Qt.Key.Key_Return)
    choices = dialog.rows["park.policy"].findChild(QComboBox)
    QTest.keyClick(choices, Qt.Key.Key_Down)
    assert seen == [(512, ParkPolicy.FCFS), (512, ParkPolicy.COST)]


def test_what_a_flag_or_a_variable_sets_is_fixed_and_says_so(make_dialog: MakeDialog) -> None:
    dialog, _ = make_dialog(environment={"LAYBY_PARALLEL": "2"}, flags={"engine.ctx_size": 4096})
    assert "--ctx-size" in shown(dialog, "engine.ctx_size")
    assert "LAYBY_PARALLEL" in shown(dialog, "engine.parallel")
    fixed = [dialog.rows[key].editor for key in ("engine.ctx_size", "engine.parallel")]
    assert not any(editor.isEnabled() for editor in fixed)
    assert dialog.rows["park.ram_mib"].editor.isEnabled()


def test_what_needs_a_reload_says_so(make_dialog: MakeDialog) -> None:
    dialog, _ = make_dialog()
    assert "next time a model is loaded" in shown(dialog, "engine.ctx_size")
    assert "next" not in shown(dialog, "park.ram_mib")


def test_a_text_that_is_no_value_is_refused_in_place(make_dialog: MakeDialog) -> None:
    dialog, settings = make_dialog()
    field = dialog.rows["engine.seed"].findChild(QLineEdit)
    field.setText("twelve")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert "whole number" in shown(dialog, "engine.seed")
    assert field.text() == ""
    field.setText("12")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert settings.settings.engine.seed == 12
    assert "give" not in shown(dialog, "engine.seed")


def test_a_pool_that_cannot_be_is_not_counted_in_chats(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            model = replace(TINY_MODEL, kv_values_per_token=10_000)
            stage.models.status = ModelStatus(state=EngineState.READY, model=model)
            stage.window.settings_window.open(setting="engine.ctx_size")
            dialog = stage.window.settings_window.dialog
            assert dialog is not None
            stage.services.settings.change("engine.ctx_size", 8192)
            assert "chats of 2,000 tokens fit" in shown(dialog, "engine.ctx_size")
            stage.services.settings.change("engine.ctx_size", 2_000_000_000)
            assert "chats of 2,000 tokens fit" not in shown(dialog, "engine.ctx_size")
            assert "Does not fit" in shown(dialog, "engine.ctx_size")

    play(story())


def test_a_switch_and_a_secret(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.server_window.open()
            server = stage.window.server_window.dialog
            assert isinstance(server, ServerWindow)
            rows, settings = server.server.rows, stage.services.settings
            rows["server.is_enabled"].findChild(QCheckBox).click()
            assert settings.settings.server.is_enabled
            field = rows["server.api_key"].findChild(QLineEdit)
            assert field.echoMode() is not QLineEdit.EchoMode.Normal
            button = server.server.defaults
            button.click()
            assert button.question is not None
            next(one for one in button.question.buttons() if one.text() == "Restore").click()
            assert not settings.settings.server.is_enabled

    play(story())


def test_numbers_have_room_to_be_read(make_dialog: MakeDialog) -> None:
    dialog, _ = make_dialog()
    number = dialog.rows["park.ram_mib"].findChild(QSpinBox)
    field = number.findChild(QLineEdit)
    assert field.width() > field.fontMetrics().horizontalAdvance("1,073,741,824 MiB") + 16
    assert number.text() == "8,192 MiB"


@pytest.mark.parametrize("text_px", [14, 28])
def test_no_page_is_wider_than_the_dialog(
    make_dialog: MakeDialog, theme: Theme, text_px: int
) -> None:
    theme.apply(ThemeChoice.LIGHT, text_px)
    dialog, _ = make_dialog()
    for place in range(dialog.pages.count()):
        dialog.pages.setCurrentRow(place)
        for area in dialog.findChildren(QScrollArea):
            if area.isVisible():
                assert area.widget().minimumSizeHint().width() <= area.viewport().width()


def test_everything_has_a_name(make_dialog: MakeDialog) -> None:
    dialog, _ = make_dialog()
    kinds = (QSpinBox, QComboBox, QScrollArea)
    controls = [one for kind in kinds for one in dialog.findChildren(kind)]
    fields = [one for row in dialog.rows.values() for one in row.findChildren(QLineEdit)]
    own = [one for one in fields if not one.objectName().startswith("qt_")]
    assert all(one.accessibleName() for one in [*controls, *own])


def test_the_window_opens_it_by_key_and_by_notice_and_closes_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            opener = stage.window.settings_window
            stage.window.commands[CommandId.SETTINGS].trigger()
            first = opener.dialog
            assert first is not None
            stage.window.commands[CommandId.SETTINGS].trigger()
            assert opener.dialog is first
            first.close()
            await until(lambda: opener.dialog is None)
            notice = notice_for(SettingError("no"))
            stage.window.notice_bar.action_wanted.emit(notice)
            assert opener.dialog is not None

    play(story())
