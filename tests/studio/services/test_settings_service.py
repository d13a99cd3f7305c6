"""SettingsService: flag over variable over file over default; the file whole or as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studio.models.errors import SettingError
from studio.models.setting_field import SettingField, SettingKind, SettingValue
from studio.models.settings import Settings, Theme, all_settings
from studio.services.settings_service import SettingSource, SettingsService


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.json"


def a_service(
    path: Path,
    *,
    environment: dict[str, str] | None = None,
    flags: dict[str, SettingValue] | None = None,
) -> SettingsService:
    return SettingsService(path, environment=environment or {}, flags=flags or {})


def test_each_layer_wins_over_the_ones_below(path: Path) -> None:
    a_service(path).change("server.port", 1)
    cases = [
        (a_service(path), 1, SettingSource.FILE),
        (a_service(path, environment={"LAYBY_PORT": "2"}), 2, SettingSource.ENVIRONMENT),
        (
            a_service(path, environment={"LAYBY_PORT": "2"}, flags={"server.port": 3}),
            3,
            SettingSource.FLAG,
        ),
    ]
    for service, port, source in cases:
        assert (service.settings.server.port, service.source("server.port")) == (port, source)
    assert a_service(path).source("server.host") is SettingSource.DEFAULT


def another_text(entry: SettingField) -> str:
    """What means another value than the default of a setting."""
    if entry.kind is SettingKind.SWITCH:
        return "off" if entry.default else "on"
    if entry.choices is not None:
        return next(str(one.value) for one in entry.choices if one is not entry.default)
    if entry.info.names:
        return next(name for name in entry.info.names if name != entry.default)
    info = entry.info
    return str(info.least or (20 if info.step == 1 else info.step))


def test_every_setting_can_be_given_by_its_variable(path: Path) -> None:
    variables = {entry.info.env: another_text(entry) for entry in all_settings()}
    service = a_service(path, environment=variables)
    for entry in all_settings():
        assert service.settings.value(entry.key) != entry.default, entry.key


def test_a_bad_variable_is_named(path: Path) -> None:
    with pytest.raises(SettingError, match="LAYBY_PORT is 'x'"):
        a_service(path, environment={"LAYBY_PORT": "x"})


def test_a_change_is_told_and_is_there_next_time(path: Path) -> None:
    service, told = a_service(path), []
    service.changed.connect(told.append)
    service.change("appearance.theme", Theme.DARK)
    service.change("appearance.theme", Theme.DARK)
    service.change("engine.seed", 7)
    assert [settings.appearance.theme for settings in told] == [Theme.DARK, Theme.DARK]
    assert a_service(path).settings == service.settings
    service.reset("appearance.theme")
    assert json.loads(path.read_text()) == {"engine": {"seed": 7}}


def test_a_flag_is_never_written_to_the_file(path: Path) -> None:
    service = a_service(path, environment={"LAYBY_HOST": "::1"}, flags={"server.port": 3})
    service.change("server.port", 9)
    assert service.settings.server.port == 3
    assert json.loads(path.read_text()) == {"server": {"port": 9}}


def test_a_value_not_allowed_changes_nothing(path: Path) -> None:
    service = a_service(path)
    with pytest.raises(SettingError, match="Port is 70000"):
        service.change("server.port", 70000)
    assert service.settings == Settings()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_broken_file_is_set_aside_and_the_defaults_hold(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    service = a_service(path)
    assert service.settings == Settings()
    assert "settings.json.broken" in str(service.problem)
    assert path.with_name("settings.json.broken").read_bytes() == content
    service.change("server.port", 5)
    assert a_service(path).problem is None


def test_a_second_broken_file_does_not_replace_the_first(path: Path) -> None:
    path.parent.mkdir()
    for content in ("first", "second"):
        path.write_text(content)
        a_service(path)
    assert path.with_name("settings.json.broken").read_text() == "first"
    assert path.with_name("settings.json.broken-2").read_text() == "second"


def test_unknown_and_bad_entries_are_logged_and_left_out(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_text('{"server": {"port": "x", "host": "::1", "colour": 1}, "engine": 3}')
    service = a_service(path)
    assert (service.settings.server.port, service.settings.server.host) == (8484, "::1")
    for word in ("server.port", "server.colour", "engine is no group"):
        assert word in caplog.text
    assert service.problem is None


def test_a_file_that_cannot_be_written_keeps_the_old_value(path: Path) -> None:
    path.parent.write_text("in the way")
    service = a_service(path)
    with pytest.raises(SettingError, match="cannot be written"):
        service.change("server.port", 5)
    assert service.settings.server.port == 8484
