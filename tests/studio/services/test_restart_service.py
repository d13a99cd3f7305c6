"""Which settings wait for the next start: those that count only then, and are others than at this one."""

from __future__ import annotations

from pathlib import Path

from studio.models.settings import LogLevel, Theme
from studio.models.window_settings import Language
from studio.services.restart_service import RestartService
from studio.services.settings_service import SettingsService


def test_what_counts_from_the_next_start_is_pending_until_it_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    settings = SettingsService(path, environment={}, flags={"log.level": "debug"})
    restarts = RestartService(settings)
    seen: list[tuple[str, ...]] = []
    restarts.changed.connect(lambda: seen.append(restarts.pending()))
    assert restarts.pending() == ()
    settings.change("appearance.theme", Theme.DARK)
    settings.change("log.level", LogLevel.ERROR)  # the flag wins, at the next start too
    settings.change("appearance.language", Language.GERMAN)
    assert restarts.pending() == ("appearance.language",)
    settings.reset("appearance.language")
    assert seen == [(), ("appearance.language",), ()]
    again = RestartService(SettingsService(path, environment={}, flags={}))
    assert again.pending() == ()
