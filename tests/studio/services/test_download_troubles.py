"""Downloads from servers and onto disks that do not behave: begun anew, given up with words, or gone on with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.chat_rig import until
from fakes.download_rig import NAME, ROOMY, SIZE, offer, open_rig, play
from fakes.file_server import FileServer, file_server
from studio.models.downloads import DownloadState
from studio.models.errors import FetchMismatch, FetchUnavailable, NoSpace


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as served:
        yield served


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
