"""Downloads from a real server that misbehaves: what arrives is the promised file, and nothing is fetched twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.chat_rig import until
from fakes.download_rig import NAME, SIZE, offer, open_rig, play
from fakes.file_server import FileServer, file_server
from studio.models.downloads import DownloadState, Offer, RemoteFile
from studio.models.errors import LibraryError
from studio.models.model_library import ModelSource
from studio.services.download_service import AT_ONCE


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as served:
        yield served


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


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
