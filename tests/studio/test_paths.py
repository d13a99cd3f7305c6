"""Where files lie, and which variables are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.paths import child_environment, find_paths, layby_variables


def test_layby_home_holds_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAYBY_HOME", str(tmp_path))
    paths = find_paths()
    files = (
        paths.history_file,
        paths.models_folder,
        paths.settings_file,
        paths.log_file,
        paths.cache,
    )
    assert all(path.is_relative_to(tmp_path) for path in files)
    assert not list(tmp_path.iterdir())


def test_a_relative_home_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAYBY_HOME", "here")
    assert find_paths().data == tmp_path / "here" / "data"


def test_without_it_the_systems_folders_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAYBY_HOME")
    paths = find_paths()
    assert all("layby" in str(path) for path in (paths.data, paths.cache, paths.config, paths.logs))
    assert all(path.is_absolute() for path in (paths.data, paths.cache, paths.config, paths.logs))


def test_only_our_variables_with_something_in_them_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LAYBY_HOME")
    monkeypatch.setenv("LAYBY_PORT", "1")
    monkeypatch.setenv("LAYBY_HOST", " ")
    monkeypatch.setenv("OTHER", "x")
    assert layby_variables() == {"LAYBY_PORT": "1"}


def test_a_child_keeps_its_temporary_files_where_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "x")
    environment = child_environment(Path("tmp"))
    assert (environment["TMPDIR"], environment["OTHER"]) == ("tmp", "x")
