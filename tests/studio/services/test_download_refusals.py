"""What is no model is refused by its first bytes, and why a download failed is known after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.download_rig import NAME, ROOMY, SIZE, offer, open_rig, play
from fakes.file_server import FileServer, file_server
from fakes.patience import until
from studio.models.downloads import DownloadState


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as served:
        yield served


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
