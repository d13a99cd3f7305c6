"""`layby doctor`: what is wrong is named with its remedy, and only what keeps Layby from working fails."""

from __future__ import annotations

import re
import socket
import threading
import tomllib
from pathlib import Path

import pytest

from fakes.fake_engine import FakeEngine
from fakes.tiny_files import write_tiny_gguf
from studio.__main__ import main
from studio.app import inspect_for_command_line
from studio.cli.checks import Check, Level
from studio.cli.doctor import check_folders, check_library, check_port, check_settings
from studio.cli.machine_checks import check_machine
from studio.cli.package_checks import NEEDED, OPTIONAL, check_packages
from studio.models.server_settings import ServerSettings
from studio.models.settings import LocalServerSettings
from studio.paths import find_paths
from studio.server.thread import ServerThread
from studio.services.model_catalog import read_catalog
from studio.services.model_library_service import ModelLibraryService
from studio.services.settings_service import SettingsService

ROOT = Path(__file__).resolve().parents[2]


def hang_up(listener: socket.socket) -> None:
    """Another program: takes one connection and says nothing."""
    listener.accept()[0].close()


def levels(checks: list[Check]) -> list[Level]:
    return [check.level for check in checks]


def test_the_doctor_prints_a_line_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    subjects = [re.match(r"(ok|warn|fail) +(\w+) +\S", line) for line in lines]
    assert all(subjects)
    found = {match[2] for match in subjects if match}
    assert found >= {
        "layby",
        "python",
        "packages",
        "triton",
        "qt",
        "processor",
        "kernels",
        "memory",
        "graphics",
        "models",
        "port",
    }
    assert code == int(any(line.startswith("fail") for line in lines))


def test_the_packages_looked_for_are_the_projects_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=; \[]", requirement)[0] for requirement in project["dependencies"]}
    assert names == set(NEEDED) | set(OPTIONAL)


def test_this_very_environment_is_well() -> None:
    checks = [*check_packages(), *check_machine(is_deep=False)]
    assert Level.FAIL not in levels(checks)


def test_a_folder_that_cannot_be_written_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Level.FAIL not in levels(list(check_folders(find_paths())))
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("LAYBY_HOME", str(blocked))
    assert levels(list(check_folders(find_paths()))).count(Level.FAIL) == 4
    assert not list(tmp_path.glob("layby-home"))


def test_a_port_in_use_is_a_warning_with_a_remedy() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        thread = threading.Thread(target=hang_up, args=(taken,))
        thread.start()
        (check,) = check_port(LocalServerSettings(port=taken.getsockname()[1]))
        thread.join()
    assert check.level is Level.WARN
    assert "--port" in check.text
    assert levels(list(check_port(LocalServerSettings(port=0)))) == [Level.OK]


def test_a_layby_that_listens_is_told_from_another_program() -> None:
    server = ServerThread(FakeEngine(), ServerSettings(port=0))
    server.start()
    try:
        (check,) = check_port(LocalServerSettings(port=server.address[1]))
    finally:
        server.stop()
    assert check.level is Level.OK
    assert "a Layby server answers" in check.text
    assert check.text.endswith(": ok")


def test_a_check_that_breaks_silences_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("LAYBY_HOME", str(blocked))
    assert main(["doctor"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["fail", "models"] in [words[:2] for words in lines]
    assert lines[-1][1] == "port"


def test_a_host_that_is_none_is_a_warning() -> None:
    assert levels(list(check_port(LocalServerSettings(host="256.1.1.1")))) == [Level.WARN]


def test_an_empty_library_and_dead_links_say_what_to_do(tmp_path: Path) -> None:
    library = ModelLibraryService(
        tmp_path / "models", read_catalog(), inspect=inspect_for_command_line
    )
    (check,) = check_library(library)
    assert "layby models get smollm2-135m" in check.text
    path = write_tiny_gguf(tmp_path).rename(tmp_path / "gone.gguf")
    library.add(path)
    path.write_bytes(path.read_bytes()[:-1000])
    sound, damaged = check_library(library)
    assert (sound.level, damaged.level) == (Level.OK, Level.WARN)
    assert damaged.text.startswith("gone cannot be loaded: gone.gguf: ")
    path.unlink()
    assert "layby models remove gone" in list(check_library(library))[-1].text


def test_a_broken_settings_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{")
    (check,) = check_settings(SettingsService(path, environment={}, flags={}))
    assert check.level is Level.WARN
