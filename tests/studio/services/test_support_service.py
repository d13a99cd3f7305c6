"""A log bundle has what helps and nothing that is private; deleting everything leaves models, and nothing else."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path

import pytest

from studio.models.errors import SupportError
from studio.paths import find_paths
from studio.services.settings_service import SettingsService
from studio.services.support_service import BundleFile, StoredKind, SupportService


def make_support() -> SupportService:
    paths = find_paths()
    settings = SettingsService(paths.settings_file, environment={}, flags={})
    settings.change("server.api_key", "s3cret-key")
    settings.change("window.recent_commands", "chat 12")
    settings.change("window.export_folder", "/media/my-secret-life")
    settings.change("appearance.text_size", 18)
    for path, text in (
        (paths.log_file, f"INFO started with s3cret-key in {Path.home()}/models\n"),
        (paths.logs / "layby.log.1", "older\n"),
        (paths.logs / "crash-before.log", "Segmentation fault\n"),
        (paths.history_file, "SQLite chats: my diary"),
        (paths.models_folder / "a.gguf", "x" * 1000),
        (paths.keys_file, "hashed keys"),
        (paths.cache / "deep" / "c.bin", "cache"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SupportService(paths, settings, doctor=lambda: "ok    layby  0.1\n")


def test_a_bundle_has_logs_settings_and_the_doctors_lines_but_nothing_private(
    tmp_path: Path,
) -> None:
    support = make_support()
    files = asyncio.run(support.bundle())
    by_name = {one.name: one.text for one in files}
    assert set(by_name) == {
        "about.txt", "doctor.txt", "settings.json",
        "logs/layby.log", "logs/layby.log.1", "logs/crash-before.log",
    }  # fmt: skip
    everything = "\n".join(by_name.values())
    for private in ("s3cret-key", "my diary", "hashed", "chat 12", "my-secret-life"):
        assert private not in everything
    if len(Path.home().parts) > 2:
        assert str(Path.home()) not in everything
    assert json.loads(by_name["settings.json"])["appearance"] == {"text_size": 18}
    assert "ok    layby" in by_name["doctor.txt"]
    target = tmp_path / "logs.zip"
    asyncio.run(support.save(files, target))
    with zipfile.ZipFile(target) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == by_name


def test_a_large_log_is_bundled_by_its_end() -> None:
    support = make_support()
    find_paths().log_file.write_text("early\n" + "x" * 3_000_000 + "\nlate\n")
    (log,) = [one for one in asyncio.run(support.bundle()) if one.name == "logs/layby.log"]
    assert log.text.endswith("late\n")
    assert "early" not in log.text


def test_a_bundle_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    support = make_support()
    with pytest.raises(SupportError, match="cannot be written"):
        asyncio.run(support.save([BundleFile("a", "b")], tmp_path / "none" / "a.zip"))


def test_what_is_stored_is_measured_apart() -> None:
    support = make_support()
    sizes = {one.kind: one.size_bytes for one in asyncio.run(support.stored())}
    assert sizes[StoredKind.MODELS] == 1000
    assert sizes[StoredKind.CHATS] == len("SQLite chats: my diary")
    assert sizes[StoredKind.CACHE] == 5


def test_deleting_everything_leaves_the_models_alone() -> None:
    support, paths = make_support(), find_paths()
    assert support.delete_everything() == []
    left = [path for path in paths.data.parent.rglob("*") if path.is_file()]
    assert left == [paths.models_folder / "a.gguf"]
