"""The library on disk: names, links and what may be deleted."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import ModelInfo
from engine.errors import CorruptModel, ModelNotFound
from engine.factory import inspect_model
from fakes.fake_engine import TINY_MODEL
from studio.models.errors import LibraryError
from studio.models.model_library import ModelSource
from studio.services.model_catalog import read_catalog, read_requirements
from studio.services.model_library_service import ModelLibraryService

GGUF = b"GGUF" + bytes(60)


def inspect(path: Path, name: str) -> ModelInfo:
    """Stands in for the engine's look at a model."""
    if not path.exists():
        raise ModelNotFound(f"{path} does not exist; check the path")
    if "damaged" in path.name:
        raise CorruptModel(f"{path.name}: ends too early")
    return replace(TINY_MODEL, path=path, name=name)


@pytest.fixture
def library(tmp_path: Path) -> ModelLibraryService:
    return ModelLibraryService(tmp_path / "models", read_catalog(), inspect=inspect)


def a_model(path: Path, data: bytes = GGUF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def a_folder_model(path: Path) -> Path:
    a_model(path / "config.json", b"{}")
    a_model(path / "model.safetensors", bytes(10))
    return path


def names(library: ModelLibraryService) -> list[str]:
    return [entry.name for entry in library.entries()]


def test_an_empty_library_has_nothing_and_makes_nothing(library: ModelLibraryService) -> None:
    assert library.entries() == ()
    assert not library.folder.exists()


def test_files_and_folders_put_into_the_folder_are_found(library: ModelLibraryService) -> None:
    a_model(library.folder / "Tiny.Q4_0.gguf")
    a_folder_model(library.folder / "qwen")
    a_model(library.folder / "notes.txt")
    a_model(library.folder / ".hidden.gguf")
    (library.folder / "empty").mkdir()
    entries = library.entries()
    assert [(entry.name, entry.size_bytes) for entry in entries] == [
        ("Tiny.Q4_0", 64),
        ("qwen", 12),
    ]
    assert {entry.source for entry in entries} == {ModelSource.FOUND}


def test_a_split_model_is_one_entry_with_all_its_bytes(library: ModelLibraryService) -> None:
    for number in (1, 2, 3):
        a_model(library.folder / f"big [x]-0000{number}-of-00003.gguf")
    (entry,) = library.entries()
    assert (entry.name, entry.size_bytes) == ("big [x]", 3 * 64)
    assert len(library.verify("big [x]")) == 3


def test_a_link_is_remembered_not_copied(library: ModelLibraryService, tmp_path: Path) -> None:
    path = a_model(tmp_path / "elsewhere" / "My Model.gguf")
    entry = library.add(path)
    assert (entry.name, entry.path, entry.source) == ("My Model", path, ModelSource.LINKED)
    assert library.add(path) == entry
    assert names(library) == ["My Model"]
    assert not list(library.folder.glob("*.gguf"))


def test_relative_paths_are_made_absolute(
    library: ModelLibraryService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_model(tmp_path / "here.gguf")
    monkeypatch.chdir(tmp_path)
    assert library.add(Path("here.gguf")).path == tmp_path / "here.gguf"
    assert library.resolve("./here.gguf") == tmp_path / "here.gguf"


def test_names_differ_even_when_case_is_ignored(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    a_model(library.folder / "tiny.gguf")
    library.add(a_model(tmp_path / "a" / "Tiny.gguf"))
    library.add(a_folder_model(tmp_path / "b" / "TINY"))
    assert names(library) == ["tiny", "Tiny-2", "TINY-3"]
    assert library.resolve("tiny-3") == tmp_path / "b" / "TINY"


def test_a_name_is_found_in_any_case_and_a_path_as_it_is(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    path = a_model(library.folder / "Tiny.gguf")
    outside = a_model(tmp_path / "outside.gguf")
    assert library.resolve("TINY") == path
    assert library.resolve(str(outside)) == outside


def test_an_unknown_model_tells_the_names_there_are(library: ModelLibraryService) -> None:
    a_model(library.folder / "one.gguf")
    a_model(library.folder / "two.gguf")
    with pytest.raises(ModelNotFound, match=r"'three'.*one, two"):
        library.resolve("three")
    with pytest.raises(ModelNotFound):
        library.resolve("")


def test_a_model_not_downloaded_yet_tells_how(library: ModelLibraryService) -> None:
    with pytest.raises(ModelNotFound, match="smollm2-135m has not been downloaded yet; download"):
        library.resolve("smollm2-135m")


def test_a_link_whose_target_is_gone_is_listed_but_not_resolved(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    path = a_model(tmp_path / "usb" / "v1.5.gguf")
    library.add(path)
    path.unlink()
    (entry,) = library.entries()
    assert (entry.name, entry.is_missing, entry.size_bytes) == ("v1.5", True, 0)
    with pytest.raises(ModelNotFound, match=rf"v1.5 is missing: {path}; put it back"):
        library.resolve("v1.5")
    library.remove("v1.5")
    assert library.entries() == ()


def test_a_fetched_file_that_is_gone_is_listed_last_and_said_to_be_gone(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    entry = library.catalog[0]
    path = a_model(library.folder / entry.file_name)
    library.record_fetched(entry)
    library.add(a_model(tmp_path / "linked.gguf"))
    path.unlink()
    assert names(library) == ["linked", entry.name]
    gone = library.get(entry.name)
    assert (gone.is_missing, gone.path, gone.source) == (True, path, ModelSource.FETCHED)
    with pytest.raises(ModelNotFound, match=rf"{entry.name} is missing: {path}; put it back"):
        library.resolve(entry.name)
    a_model(path)
    assert not library.get(entry.name).is_missing
    path.unlink()
    library.remove(entry.name)
    assert names(library) == ["linked"]


def test_a_fetched_model_that_was_renamed_can_be_fetched_again(
    library: ModelLibraryService,
) -> None:
    entry = library.catalog[0]
    path = a_model(library.folder / entry.file_name)
    library.record_fetched(entry)
    library.rename(entry.name, "mine")
    path.unlink()
    assert library.get("mine").is_missing
    a_model(path)
    assert (library.record_fetched(entry).name, names(library)) == ("mine", ["mine"])


def test_of_a_fetched_split_model_that_is_gone_there_is_one_entry_and_none_once_removed(
    library: ModelLibraryService,
) -> None:
    parts = [f"big-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for part in parts:
        a_model(library.folder / part)
    library.record_files(dict.fromkeys(parts, "ab"))
    (library.folder / parts[0]).unlink()
    (entry,) = library.entries()
    assert (entry.name, entry.is_missing) == ("big", True)
    library.remove("big")
    assert library.entries() == ()
    assert list(library.folder.glob("*.gguf")) == []


def test_a_fetched_file_that_was_moved_away_is_followed_and_a_link_from_then_on(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    entry = library.catalog[0]
    path = a_model(library.folder / entry.file_name)
    library.record_fetched(entry)
    moved = tmp_path / "moved.gguf"
    path.rename(moved)
    assert library.relocate(entry.name, moved).path == moved
    assert [(one.name, one.source) for one in library.entries()] == [
        (entry.name, ModelSource.LINKED)
    ]
    library.remove(entry.name)
    assert moved.exists(), "it is no longer the library's own"


def test_a_path_where_nothing_is_any_more_is_said_to_be_that(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    with pytest.raises(ModelNotFound, match=rf"there is no file {tmp_path / 'a.gguf'}"):
        library.resolve(str(tmp_path / "a.gguf"))


def test_what_the_engine_refuses_and_later_parts_are_not_added(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    with pytest.raises(CorruptModel, match="ends too early"):
        library.add(a_model(tmp_path / "damaged.gguf"))
    with pytest.raises(ModelNotFound, match="does not exist"):
        library.add(tmp_path / "absent.gguf")
    with pytest.raises(LibraryError, match="part 2"):
        library.add(a_model(tmp_path / "big-00002-of-00003.gguf"))
    assert library.entries() == ()
    assert not library.folder.exists()


def test_removing_deletes_only_what_the_library_fetched(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    entry = library.catalog[0]
    fetched = a_model(library.folder / entry.file_name)
    library.record_fetched(entry)
    found = a_model(library.folder / "mine.gguf")
    linked = a_model(tmp_path / "linked.gguf")
    library.add(linked)
    library.remove("SMOLLM2-135M")
    library.remove("linked")
    with pytest.raises(LibraryError, match="by hand"):
        library.remove("mine")
    assert (fetched.exists(), found.exists(), linked.exists()) == (False, True, True)
    assert names(library) == ["mine"]


def test_verify_tells_right_from_wrong(library: ModelLibraryService) -> None:
    data = GGUF + b"weights"
    right = replace(
        library.catalog[0], sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data)
    )
    library = ModelLibraryService(library.folder, (right,), inspect=inspect)
    path = a_model(library.folder / right.file_name, data)
    (good,) = library.verify("smollm2-135m")
    assert not good.is_wrong
    path.write_bytes(data[:-1] + b"x")
    (bad,) = library.verify("smollm2-135m")
    assert bad.is_wrong
    assert bad.expected == right.sha256
    a_model(library.folder / "other.gguf")
    (unknown,) = library.verify("other")
    assert (unknown.expected, unknown.is_wrong) == (None, False)
    a_model(library.folder / "damaged.gguf")
    with pytest.raises(CorruptModel):
        library.verify("damaged")


def test_broken_notes_are_set_aside(
    library: ModelLibraryService, caplog: pytest.LogCaptureFixture
) -> None:
    a_model(library.folder / "library.json", b'{"links": 3}')
    a_model(library.folder / "tiny.gguf")
    assert names(library) == ["tiny"]
    assert "library.json.broken" in caplog.text


def test_the_catalogue_is_complete_and_pins_what_it_fetches() -> None:
    (entry,) = read_catalog()
    assert entry.name == "smollm2-135m"
    assert entry.file_name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert len(entry.sha256) == 64
    assert read_requirements(entry).count("--hash=sha256:") == 1


def test_the_catalogue_tells_of_the_starter_model_what_its_file_says(starter_model: Path) -> None:
    (entry,) = read_catalog()
    info = inspect_model(starter_model, entry.name)
    for fact in ("size_bytes", "parameters", "context_tokens", "kv_values_per_token"):
        assert getattr(entry, fact) == getattr(info, fact), fact


@pytest.mark.parametrize(
    ("name", "words"),
    [(" ", "has 0 characters"), ("x" * 81, "has 81"), ("OTHER", "is called 'OTHER' already")],
)
def test_a_name_that_cannot_be_is_refused(
    library: ModelLibraryService, name: str, words: str
) -> None:
    a_model(library.folder / "one.gguf")
    a_model(library.folder / "other.gguf")
    with pytest.raises(LibraryError, match=words):
        library.rename("one", name)
    assert names(library) == ["one", "other"]


def test_a_new_name_is_what_clients_ask_for_and_the_file_keeps_its_own(
    library: ModelLibraryService,
) -> None:
    path = a_model(library.folder / "one.gguf")
    assert library.rename("one", "  My   model ").name == "My model"
    assert library.get("my model").path == path
    assert path.exists()
    with pytest.raises(ModelNotFound):
        library.get("one")


def test_only_a_link_can_move_and_only_to_a_sound_model(
    library: ModelLibraryService, tmp_path: Path
) -> None:
    a_model(library.folder / "own.gguf")
    link = a_model(tmp_path / "link.gguf")
    library.add(link)
    with pytest.raises(LibraryError, match="only links can move"):
        library.relocate("own", link)
    with pytest.raises(CorruptModel):
        library.relocate("link", a_model(tmp_path / "damaged.gguf"))
    with pytest.raises(LibraryError, match="is in the library already"):
        library.relocate("link", library.folder / "own.gguf")
    assert library.get("link").path == link


def test_notes_of_an_older_version_are_read(library: ModelLibraryService, tmp_path: Path) -> None:
    link = a_model(tmp_path / "link.gguf")
    a_model(
        library.folder / "library.json",
        f'{{"links": ["{link.as_posix()}"], "fetched": []}}'.encode(),
    )
    assert names(library) == ["link"]
