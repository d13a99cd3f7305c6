"""SettingsService: flag over variable over file over default; the file whole or as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from studio.models.errors import SettingError
from studio.models.setting_field import SettingValue
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


def test_every_setting_can_be_given_by_its_variable(path: Path) -> None:
    texts = {"LAYBY_MODEL": "m", "LAYBY_DEVICE": "cpu", "LAYBY_HOST": "::1", "LAYBY_API_KEY": "k"}
    texts |= {"LAYBY_SERVER": "on", "LAYBY_THEME": "dark", "LAYBY_LOG_LEVEL": "debug"}
    texts |= {"LAYBY_CTX_SIZE": "2048", "LAYBY_CONTEXT_SHIFT": "on", "LAYBY_PREEMPT_POLICY": "cost"}
    texts |= {"LAYBY_PREEMPT_ASYNC": "off", "LAYBY_TEST_PREEMPT_PLANNER": "off"}
    texts |= {"LAYBY_TEST_PREEMPT_RESUME": "pass", "LAYBY_TEST_PREEMPT_COPY": "on"}
    texts |= {"LAYBY_TEST_PREEMPT_GRANULARITY": "64", "LAYBY_CPU_VARIANT": "native"}
    texts |= {"LAYBY_KV_TYPE": "q8_0", "LAYBY_LANGUAGE": "de", "LAYBY_TRAY": "on"}
    variables = {entry.info.env: texts.get(entry.info.env, "20") for entry in all_settings()}
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
