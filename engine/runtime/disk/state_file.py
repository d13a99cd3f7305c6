"""A saved state as one safetensors file: tokens, pages, and a description with a checksum over all of it.

Written page by page, straight from where the pages lie. Read back, a file must be exactly what this version would
write for the state it describes. Blocking; any thread. No torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.regular_file import open_regular
from engine.runtime.disk.saved_state import (
    Metadata,
    SavedState,
    StateBroken,
    metadata_of,
    read_metadata,
)

FORMAT = "layby-parked-1"
MAX_HEADER_BYTES = 4 << 20
_LENGTH_BYTES = 8
_NO_CHECKSUM = "0" * 64


@dataclass(frozen=True, slots=True)
class Recalled:
    """A state and the bytes of its pages, [pages, page_bytes]; no pages where they were not saved or not wanted."""

    state: SavedState
    pages: NDArray[np.uint8]

    def without_pages(self) -> Recalled:
        """The same to be computed again."""
        return Recalled(replace(self.state, num_pages=0), self.pages[:0])


def write_state(
    file: BinaryIO,
    state: SavedState,
    pages: Iterable[NDArray[np.uint8]],
    is_wanted: Callable[[], bool],
) -> bool:
    """Write a state and see to it that it is on the disk. False, with half a file, once it is not wanted any more.

    `pages` are the `num_pages` pages of the state. Raises OSError.
    """
    metadata = metadata_of(state)
    checksum = hashlib.sha256(metadata.encode())
    file.write(_header(state, metadata, _NO_CHECKSUM))
    for part in (_token_bytes(state.token_ids), _token_bytes(state.reply_ids), *pages):
        if not is_wanted():
            return False
        checksum.update(part.data)
        file.write(part.data)
    file.seek(0)
    file.write(_header(state, metadata, checksum.hexdigest()))
    file.flush()
    os.fsync(file.fileno())
    return True


def read_state(path: Path) -> Recalled:
    """Read and check a state. Raises OSError, and StateBroken for whatever this version has not written like that."""
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file)
        text, checksum = _description(header)
        metadata = read_metadata(text)
        expected = len(header) + 4 * (metadata.num_tokens + metadata.num_reply)
        expected += metadata.num_page_bytes
        if size != expected:
            raise StateBroken(f"it has {size} bytes and should have {expected}")
        return _read_rest(file, header, metadata, checksum)


def _read_rest(file: BinaryIO, header: bytes, metadata: Metadata, checksum: str) -> Recalled:
    """The tokens and pages; the file is known to be as large as they are."""
    token_ids = _read(file, 4 * metadata.num_tokens)
    reply_ids = _read(file, 4 * metadata.num_reply)
    state = metadata.with_tokens(_tokens(token_ids), _tokens(reply_ids))
    pages = _read(file, metadata.num_page_bytes)
    text = metadata_of(state)
    found = hashlib.sha256(text.encode())
    for part in (token_ids, reply_ids, pages):
        found.update(part.data)
    if found.hexdigest() != checksum or header != _header(state, text, checksum):
        raise StateBroken("its content does not fit its checksum")
    return Recalled(state, pages.reshape(state.num_pages, state.page_bytes))


def _read_header(file: BinaryIO) -> bytes:
    """Length and header, as they stand in the file."""
    prefix = file.read(_LENGTH_BYTES)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < _LENGTH_BYTES or length > MAX_HEADER_BYTES:
        raise StateBroken(f"its header has {length} bytes, the limit is {MAX_HEADER_BYTES}")
    rest = file.read(length)
    if len(rest) < length:
        raise StateBroken("it ends within its header")
    return prefix + rest


def _description(header: bytes) -> tuple[str, str]:
    """The description and the checksum."""
    try:
        values = json.loads(header[_LENGTH_BYTES:])
    except (ValueError, RecursionError) as error:
        raise StateBroken(f"its header is no JSON ({error})") from error
    found = values.get("__metadata__") if isinstance(values, dict) else None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateBroken(f"it is not of the format {FORMAT}")
    text, checksum = found.get("state"), found.get("sha256")
    if not isinstance(text, str) or not isinstance(checksum, str):
        raise StateBroken("it has no description")
    return text, checksum


def _header(state: SavedState, metadata: str, checksum: str) -> bytes:
    ends = np.cumsum(
        [0, 4 * len(state.token_ids), 4 * len(state.reply_ids), state.num_pages * state.page_bytes]
    ).tolist()
    header = {
        "__metadata__": {"format": FORMAT, "sha256": checksum, "state": metadata},
        "tokens": _entry("I32", [len(state.token_ids)], ends[0:2]),
        "reply": _entry("I32", [len(state.reply_ids)], ends[1:3]),
        "pages": _entry("U8", [state.num_pages, state.page_bytes], ends[2:4]),
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _entry(dtype: str, shape: list[int], offsets: list[int]) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def _token_bytes(ids: tuple[int, ...]) -> NDArray[np.uint8]:
    return np.array(ids, dtype="<i4").view(np.uint8)


def _tokens(data: NDArray[np.uint8]) -> tuple[int, ...]:
    return tuple(data.view("<i4").tolist())


def _read(file: BinaryIO, count: int) -> NDArray[np.uint8]:
    """Exactly `count` bytes."""
    try:
        data = np.empty(count, np.uint8)
    except (MemoryError, ValueError) as error:
        raise StateBroken(f"there is no memory for {count} bytes of it") from error
    if file.readinto(data.data) != count:  # type: ignore[attr-defined]
        raise StateBroken("it ended while it was read")
    return data
