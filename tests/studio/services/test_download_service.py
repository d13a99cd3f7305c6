"""Downloads from a real server that misbehaves: what arrives is the promised file, and nothing is fetched twice."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine.api import ModelInfo
from fakes.chat_rig import until
from fakes.fake_engine import TINY_MODEL
from fakes.file_server import FileServer, file_server
from studio.models.downloads import Download, DownloadState, Offer, RemoteFile
from studio.models.errors import FetchMismatch, FetchUnavailable, LibraryError, NoSpace
from studio.models.model_library import ModelSource
from studio.services.download_service import AT_ONCE, DownloadService
from studio.services.model_library_service import ModelLibraryService

SIZE = 3_000_000
NAME = "model.gguf"
ROOMY = 1 << 50


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as served:
        yield served


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@dataclass(slots=True)
class Rig:
    downloads: DownloadService
    library: ModelLibraryService
    arrived: list[str]

    @property
    def only(self) -> Download:
        (download,) = self.downloads.downloads
        return download

    async def until(self, *states: DownloadState) -> Download:
        await until(lambda: self.only.state in states)
        return self.only

    def content(self, name: str = NAME) -> bytes:
        return (self.library.folder / name).read_bytes()


def inspect(path: Path, name: str) -> ModelInfo:
    return replace(TINY_MODEL, path=path, name=name)


@asynccontextmanager
async def open_rig(
    folder: Path, *, free_bytes: Callable[[Path], int] = lambda _: ROOMY
) -> AsyncIterator[Rig]:
    library = ModelLibraryService(folder / "models", (), inspect=inspect)
    downloads = DownloadService(library, free_bytes=free_bytes, pause_s=lambda _tries: 0.0)
    arrived: list[str] = []
    downloads.arrived.connect(arrived.append)
    await downloads.restore()
    try:
        yield Rig(downloads, library, arrived)
    finally:
        await downloads.close()


def offer(server: FileServer, *names: str, promised: bool = True) -> Offer:
    names = names or (NAME,)
    files = tuple(server.remote(name, promised=promised) for name in names)
    return Offer(name="model", files=files, source="here")


def play(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("promised", [True, False])
def test_a_file_comes_whole_and_is_the_librarys_own(
    tmp_path: Path, server: FileServer, *, promised: bool
) -> None:
    file = server.add(NAME, SIZE)

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=promised))
            done = await rig.until(DownloadState.DONE)
            assert (done.done_bytes, done.total_bytes) == (SIZE, SIZE)
            assert rig.content() == file.data
            assert rig.arrived == [NAME]
            (entry,) = rig.library.entries()
            assert entry.source is ModelSource.FETCHED
            assert entry.sha256 == (file.sha256 if promised else None)
            assert not list((rig.library.folder / ".downloads").glob("*"))
            rig.library.remove("model")
            assert not list(rig.library.folder.glob("*.gguf"))

    play(story())


def test_a_connection_cut_twice_goes_on_at_its_offset(tmp_path: Path, server: FileServer) -> None:
    file = server.add(NAME, SIZE)
    file.cuts = [1_000_000, 500_000]

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())
    first, second, third = server.ranges_of(NAME)
    assert first is None
    assert second == "bytes=1000000-"
    assert third == "bytes=1500000-"


def test_it_survives_the_end_of_the_program_and_goes_on_at_its_offset(
    tmp_path: Path, server: FileServer
) -> None:
    file = server.add(NAME, SIZE)
    file.holds_after = 1_200_000

    async def first_run() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            await until(lambda: rig.only.done_bytes == 1_200_000)

    async def second_run() -> None:
        async with open_rig(tmp_path) as rig:
            assert rig.only.state is DownloadState.PAUSED
            assert rig.only.done_bytes == 1_200_000
            assert len(server.asked) == 1, "nothing is asked of the network by itself"
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(first_run())
    file.holds_after = None
    file.go_on.set()
    play(second_run())
    assert server.ranges_of(NAME) == [None, "bytes=1200000-"]


def test_a_killed_program_loses_nothing_that_had_come(tmp_path: Path, server: FileServer) -> None:
    file = server.add(NAME, SIZE)
    file.holds_after = 1_200_000
    folder, address = str(tmp_path / "models"), f"{server.address}/{NAME}"
    root = Path(__file__).resolve().parents[3]
    paths = os.pathsep.join((str(root), str(root / "tests")))
    with subprocess.Popen(
        [sys.executable, "-m", "fakes.download_process", folder, address, "1200000"],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.kill()

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            assert (rig.only.state, rig.only.done_bytes) == (DownloadState.PAUSED, 1_200_000)
            assert rig.only.files[0].etag == file.etag
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    file.holds_after = None
    file.go_on.set()
    play(story())
    assert server.ranges_of(NAME) == [None, "bytes=1200000-"]


def test_pausing_and_going_on(tmp_path: Path, server: FileServer) -> None:
    file = server.add(NAME, SIZE)
    file.holds_after = 700_000

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            await until(lambda: rig.only.done_bytes == 700_000)
            await rig.downloads.pause(rig.only.download_id)
            assert (rig.only.state, rig.only.bytes_per_s) == (DownloadState.PAUSED, 0.0)
            file.holds_after = None
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())
    assert server.ranges_of(NAME)[1] == "bytes=700000-"


def test_cancelling_leaves_nothing(tmp_path: Path, server: FileServer) -> None:
    server.add(NAME, SIZE).holds_after = 700_000

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            download = await rig.downloads.add(offer(server))
            await until(lambda: rig.only.done_bytes == 700_000)
            await rig.downloads.cancel(download.download_id)
            assert rig.downloads.downloads == ()
            assert not list((rig.library.folder / ".downloads").glob("*"))
            assert rig.library.entries() == ()

    play(story())


def test_where_ranges_are_ignored_it_is_begun_anew(tmp_path: Path, server: FileServer) -> None:
    file = server.add(NAME, SIZE)
    file.cuts, file.takes_ranges = [1_000_000], False

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=False))
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())
    assert server.ranges_of(NAME) == [None, "bytes=1000000-"]


def test_a_file_that_has_changed_meanwhile_is_begun_anew(
    tmp_path: Path, server: FileServer
) -> None:
    file, other = server.add(NAME, SIZE), server.add("other.gguf", SIZE, seed=1)
    file.holds_after = 1_000_000

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=False))
            await until(lambda: rig.only.done_bytes == 1_000_000)
            await rig.downloads.pause(rig.only.download_id)
            file.data, file.etag, file.holds_after = other.data, '"two"', None
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == other.data

    play(story())


def test_a_wrong_byte_is_named_and_only_that_file_is_fetched_again(
    tmp_path: Path, server: FileServer
) -> None:
    names = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf")
    first, second = (server.add(name, SIZE, seed=n) for n, name in enumerate(names))
    second.corrupt_at = 12345

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, *names))
            failed = await rig.until(DownloadState.FAILED)
            assert isinstance(failed.error, FetchMismatch)
            assert names[1] in str(failed.error)
            assert second.sha256[:12] in str(failed.error)
            assert rig.library.entries() == ()
            second.corrupt_at = None
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert (rig.content(names[0]), rig.content(names[1])) == (first.data, second.data)
            (entry,) = rig.library.entries()
            assert all(not each.is_wrong for each in rig.library.verify(entry.name))

    play(story())
    assert server.ranges_of(names[0]) == [None]
    assert server.ranges_of(names[1]) == [None, None]


def test_without_room_nothing_is_begun_and_with_room_it_goes_on(
    tmp_path: Path, server: FileServer
) -> None:
    file = server.add(NAME, SIZE)
    free = [1000]

    async def story() -> None:
        async with open_rig(tmp_path, free_bytes=lambda _folder: free[0]) as rig:
            await rig.downloads.add(offer(server))
            failed = await rig.until(DownloadState.FAILED)
            assert isinstance(failed.error, NoSpace)
            assert f"the disk of {rig.library.folder} has 1 kB free, model.gguf" in str(
                failed.error
            )
            assert "needs 70 MB more" in str(failed.error)
            assert server.asked == []
            free[0] = ROOMY
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())


def test_a_disk_that_fills_meanwhile_keeps_what_has_come(
    tmp_path: Path, server: FileServer
) -> None:
    file = server.add(NAME, SIZE)
    file.cuts = [1_000_000]
    answers = [ROOMY, ROOMY, 1000]  # before asking, with the answer, and again before the rest

    async def story() -> None:
        async with open_rig(
            tmp_path, free_bytes=lambda _folder: answers.pop(0) if answers else ROOMY
        ) as rig:
            await rig.downloads.add(offer(server))
            failed = await rig.until(DownloadState.FAILED)
            assert isinstance(failed.error, NoSpace)
            assert failed.done_bytes == 1_000_000
            await rig.downloads.go_on(rig.only.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())
    assert server.ranges_of(NAME) == [None, "bytes=1000000-"]


def test_proxies_of_the_environment_are_used(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    address = "http://models.example/model.gguf"
    server.files[address] = file = server.add(NAME, 100_000)  # a proxy is asked with the whole

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            remote = RemoteFile(url=address, file_name=NAME, sha256=file.sha256)
            await rig.downloads.add(Offer(name="model", files=(remote,), source="there"))
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())
    assert [path for path, _ in server.asked] == [address]


@pytest.mark.parametrize(
    ("status", "words"), [(404, "answered 404"), (403, "only to those it knows"), (401, "terms")]
)
def test_an_answer_that_will_not_change_is_told_at_once(
    tmp_path: Path, server: FileServer, status: int, words: str
) -> None:
    server.add(NAME, SIZE).status = status

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            failed = await rig.until(DownloadState.FAILED)
            assert isinstance(failed.error, FetchUnavailable)
            assert words in str(failed.error)

    play(story())
    assert len(server.asked) == 1


def test_a_source_that_is_down_is_tried_again_and_then_given_up_on(
    tmp_path: Path, server: FileServer
) -> None:
    server.add(NAME, SIZE).status = 503

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            failed = await rig.until(DownloadState.FAILED)
            assert "answered 503, 6 times in a row" in str(failed.error)

    play(story())
    assert len(server.asked) == 6


@pytest.mark.parametrize("other", ["longer", "shorter", "packed"])
def test_what_is_not_the_promised_file_is_refused_before_it_is_taken(
    tmp_path: Path, server: FileServer, other: str
) -> None:
    file = server.add(NAME, SIZE)
    promise = offer(server)
    if other == "packed":
        file.packing = "gzip"
    else:
        file.data = file.data[:-1] if other == "shorter" else file.data + b"x"

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(promise)
            failed = await rig.until(DownloadState.FAILED)
            words = "sends the file packed" if other == "packed" else "promised were 3,000,000"
            assert words in str(failed.error)

    play(story())


def test_a_source_that_says_no_length_is_taken_to_its_end(
    tmp_path: Path, server: FileServer
) -> None:
    file = server.add(NAME, SIZE)
    file.says_length = False

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=False))
            await rig.until(DownloadState.DONE)
            assert rig.content() == file.data

    play(story())


def test_a_few_run_at_once_and_the_others_wait_their_turn(
    tmp_path: Path, server: FileServer
) -> None:
    names = [f"m{n}.gguf" for n in range(AT_ONCE + 2)]
    for n, name in enumerate(names):
        server.add(name, 100_000, seed=n).holds_after = 50_000

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            for name in names:
                await rig.downloads.add(offer(server, name))
            held = [server.files[f"/{name}"] for name in names]
            await until(lambda: all(each.is_held.is_set() for each in held[:AT_ONCE]))
            states = [each.state for each in rig.downloads.downloads]
            assert states[AT_ONCE:] == [DownloadState.QUEUED] * 2
            assert len(server.asked) == AT_ONCE
            await rig.downloads.pause(rig.downloads.downloads[0].download_id)
            await until(held[AT_ONCE].is_held.is_set)
            for each in held:
                each.go_on.set()
            await rig.downloads.go_on(rig.downloads.downloads[0].download_id)
            await until(
                lambda: all(each.state is DownloadState.DONE for each in rig.downloads.downloads)
            )
            assert all(rig.content(name) == server.files[f"/{name}"].data for name in names)

    play(story())


def test_the_same_again_is_the_same_download_and_a_file_in_the_way_is_left_alone(
    tmp_path: Path, server: FileServer
) -> None:
    server.add(NAME, SIZE).holds_after = 10
    server.add("mine.gguf", SIZE)

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            first = await rig.downloads.add(offer(server))
            again = await rig.downloads.add(offer(server))
            assert again.download_id == first.download_id
            (rig.library.folder / "mine.gguf").write_bytes(b"mine")
            with pytest.raises(LibraryError, match=r"mine\.gguf is in the library's folder"):
                await rig.downloads.add(offer(server, "mine.gguf"))
            assert rig.content("mine.gguf") == b"mine"

    play(story())


PAGE = b"\r\n<!doctype html><title>Log in</title>" + b" " * 5_000_000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PAGE[:38], "127.0.0.1 sent a web page in place of model.gguf"),
        (PAGE, "127.0.0.1 sent a web page in place of model.gguf"),
        (b"\0" * 5_000_000, "what 127.0.0.1 sent as model.gguf is no GGUF file"),
        (b"GG", "what 127.0.0.1 sent as model.gguf is no GGUF file"),
        (b"", "what 127.0.0.1 sent as model.gguf is no GGUF file"),
    ],
)
def test_what_is_no_model_is_refused_by_its_first_bytes_and_not_kept(
    tmp_path: Path, server: FileServer, data: bytes, words: str
) -> None:
    file = server.add(NAME, SIZE)
    model, file.data = file.data, data
    if len(data) > SIZE:
        file.holds_after = 1_000_000  # the rest never comes

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=False))
            failed = await rig.until(DownloadState.FAILED)
            assert words in str(failed.error)
            assert failed.done_bytes == 0
            assert not list(rig.library.folder.rglob("*.part"))
            assert rig.library.entries() == ()
            file.data, file.holds_after = model, None
            await rig.downloads.go_on(failed.download_id)
            await rig.until(DownloadState.DONE)
            assert rig.content() == model

    play(story())


def test_what_was_collected_of_another_kind_is_refused_too(
    tmp_path: Path, server: FileServer
) -> None:
    """An older Layby may have left it there."""
    file = server.add(NAME, SIZE)
    file.holds_after = 1_000_000

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server, promised=False))
            await until(lambda: rig.only.done_bytes == 1_000_000)
            await rig.downloads.pause(rig.only.download_id)
            (part,) = rig.library.folder.rglob("*.part")
            part.write_bytes(PAGE[:1_000_000])
            file.holds_after = None
            await rig.downloads.go_on(rig.only.download_id)
            failed = await rig.until(DownloadState.FAILED)
            assert "sent a web page" in str(failed.error)

    play(story())


@pytest.mark.parametrize("status", [404, 200])
def test_why_a_download_failed_is_known_after_a_restart(
    tmp_path: Path, server: FileServer, status: int
) -> None:
    server.add(NAME, SIZE).status = status
    free = ROOMY if status == 404 else 1000

    async def story() -> None:
        async with open_rig(tmp_path, free_bytes=lambda _folder: free) as rig:
            await rig.downloads.add(offer(server))
            told = (await rig.until(DownloadState.FAILED)).error
        async with open_rig(tmp_path) as rig:
            assert rig.only.state is DownloadState.FAILED
            assert type(rig.only.error) is type(told)
            assert str(rig.only.error) == str(told)
            await rig.downloads.go_on(rig.only.download_id)
            assert rig.only.error is None

    play(story())


@pytest.mark.parametrize("error", [None, 1, {"code": 3}, {"code": "fetch_of_old", "text": "gone"}])
def test_a_note_of_another_version_is_read_as_far_as_it_goes(
    tmp_path: Path, server: FileServer, error: object
) -> None:
    server.add(NAME, SIZE).status = 404

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            await rig.downloads.add(offer(server))
            await rig.until(DownloadState.FAILED)
        (note,) = rig.library.folder.rglob("download.json")
        record = json.loads(note.read_text())
        note.write_text(json.dumps(record | {"error": error}))
        async with open_rig(tmp_path) as rig:
            assert rig.only.state is DownloadState.FAILED

    play(story())


@pytest.mark.parametrize("text", ["{", "[]", '{"offer": 1}'])
def test_a_broken_note_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    note = tmp_path / "models" / ".downloads" / "x" / "download.json"
    note.parent.mkdir(parents=True)
    note.write_text(text)

    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            assert rig.downloads.downloads == ()

    play(story())
    assert "was broken" in caplog.text
