"""Where the loaded model has its own value, the settings for all say so, lead there, and promise nothing else."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel

from engine.api import Device, EngineState, KvType
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import ENTRY, Stage, open_stage, until
from studio.models.load_choices import SETTING_OF, LoadChoices
from studio.models.model_library import ModelEntry
from studio.views.models.load_dialog import LoadDialog
from studio.views.settings.dialog import SettingsDialog
from studio.views.settings.own_note import OwnNote
from studio.views.settings.pending_bar import PendingBar
from studio.views.words import count, tr

Play = Callable[[Coroutine[Any, Any, None]], None]
OWN = LoadChoices(
    pool_tokens=1024,
    parallel=2,
    threads=3,
    kv_type=KvType.Q8_0,
    device=Device.CPU,
    preempt_ram_mib=64,
)


def settings_of(stage: Stage) -> SettingsDialog:
    stage.window.settings_window.open()
    dialog = stage.window.settings_window.dialog
    assert dialog is not None
    return dialog


def note_at(dialog: SettingsDialog, key: str) -> OwnNote:
    note = dialog.rows[key].findChild(OwnNote)
    assert note is not None
    return note


@pytest.mark.parametrize("entries", [(ENTRY,), ()], ids=["in the library", "elsewhere"])
def test_each_setting_says_what_the_model_has_of_its_own_and_leads_there(
    play: Play, tmp_path: Path, entries: tuple[ModelEntry, ...]
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.models.entries = entries
            dialog = settings_of(stage)
            assert all(note_at(dialog, key).isHidden() for key in SETTING_OF.values())
            stage.models.load_settings.change(TINY_MODEL.path, OWN)
            for name, key in SETTING_OF.items():
                note = note_at(dialog, key)
                assert not note.isHidden()
                note.button.click()
                note.button.click()
                (there,) = stage.window.models_window.dialog.findChildren(LoadDialog)
                await until(
                    lambda there=there, name=name: there.focusWidget() is there.fields[name]
                )
                assert there.choices == OWN
                stage.window.models_window.close()
                await until(lambda: stage.window.models_window.dialog is None)
            words = note_at(dialog, "engine.ctx_size").findChild(QLabel).text()
            assert f"{count(1024)} {tr('tokens')}" in words
            assert TINY_MODEL.name in words
            stage.models.say(EngineState.NO_MODEL)
            assert all(note_at(dialog, key).isHidden() for key in SETTING_OF.values())

    play(story())


def test_what_a_model_has_of_its_own_is_not_promised_from_the_settings(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            settings = stage.services.settings
            stage.models.load_settings.change(TINY_MODEL.path, LoadChoices(pool_tokens=1024))
            settings.change("engine.ctx_size", 4096)
            settings.change("engine.parallel", 7)
            bar = settings_of(stage).findChild(PendingBar)
            words = bar.findChild(QLabel).text()
            assert tr("Requests at once") in words
            own = tr("{title} ({value}, this model's own)")
            value = f"{count(1024)} {tr('tokens')}"
            assert own.format(title=tr("Pool size"), value=value) in words

    play(story())
