"""Opens a file of chats, whatever it is: Layby's JSON, ChatGPT's, or ChatGPT's zip. Runs in a worker thread; no Qt.

Sizes are bounded before anything is unpacked or parsed.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import ExchangeError
from studio.models.json_faults import json_fault
from studio.models.sizes import size_text
from studio.services.exchange import chatgpt_file, layby_file
from studio.services.exchange.reading import BrokenEntry, Reading

MOST_BYTES = 1 << 30
_LISTS = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")


def read_chats(path: Path, *, most_bytes: int = MOST_BYTES) -> Reading:
    """The chats in a file. Raises ExchangeError where there are none to be had."""
    try:
        if zipfile.is_zipfile(path):
            return _read_zip(path, most_bytes)
        if path.stat().st_size > most_bytes:
            raise _too_large(path, most_bytes)
        return _read(path.read_bytes(), path.name)
    except OSError as error:
        raise ExchangeError(f"{path} cannot be read: {system_fault(error)}") from error


def _read_zip(path: Path, most_bytes: int) -> Reading:
    reading, left = Reading(), most_bytes
    try:
        with zipfile.ZipFile(path) as archive:
            names = [one for one in archive.namelist() if _LISTS.fullmatch(one)]
            for name in sorted(names):
                with archive.open(name) as member:
                    data = member.read(left + 1)
                if len(data) > left:
                    raise _too_large(path, most_bytes)
                left -= len(data)
                reading += _read(data, f"{path.name}/{name}")
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise ExchangeError(
            f"{path.name} is a damaged or locked zip file; unpack it and choose the file inside, "
            "or export it again"
        ) from error
    if not names:
        raise ExchangeError(
            f"{path.name} has no conversations.json in it; choose the zip file of a ChatGPT export"
        )
    return reading


def _read(data: bytes, name: str) -> Reading:
    try:
        parsed = json.loads(data)
        if layby_file.is_layby_file(parsed):
            return layby_file.decode(parsed)
        if chatgpt_file.is_chatgpt_file(parsed):
            return chatgpt_file.decode(parsed)
    except (ValueError, RecursionError, BrokenEntry) as error:
        raise ExchangeError(f"{name} is damaged or no JSON file ({json_fault(error)})") from error
    raise ExchangeError(
        f"{name} holds no chats; choose a file that Layby exported, or a ChatGPT export"
    )


def _too_large(path: Path, most_bytes: int) -> ExchangeError:
    return ExchangeError(
        f"{path.name} is larger than {size_text(most_bytes)}; export fewer chats into one file"
    )
