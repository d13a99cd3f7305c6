"""A program that downloads one file and is killed: run with the models' folder, the address and the bytes to wait for.

It prints "there" once so many bytes have come, and goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from engine.api import ModelInfo
from studio.models.downloads import Offer, RemoteFile
from studio.services.download_service import DownloadService
from studio.services.model_library_service import ModelLibraryService


def _inspect(path: Path, name: str) -> ModelInfo:
    raise AssertionError("nothing is added here")


async def main(folder: str, address: str, wanted: str) -> None:
    library = ModelLibraryService(Path(folder), (), inspect=_inspect)
    downloads = DownloadService(library, free_bytes=lambda _folder: 1 << 50)
    file = RemoteFile(url=address, file_name="model.gguf")
    is_there = asyncio.Event()

    def look() -> None:
        if downloads.downloads and downloads.downloads[0].done_bytes >= int(wanted):
            is_there.set()

    downloads.changed.connect(look)
    await downloads.add(Offer(name="model", files=(file,), source="here"))
    await is_there.wait()
    sys.stdout.write("there\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
