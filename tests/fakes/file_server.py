"""A web server that misbehaves on purpose: it cuts connections, ignores ranges, changes and holds back files."""

from __future__ import annotations

import hashlib
import http.server
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from studio.models.downloads import RemoteFile

WAIT_S = 60.0


@dataclass(slots=True)
class ServedFile:
    """One file and how it is served. A test may change it at any time."""

    data: bytes
    etag: str = '"one"'
    takes_ranges: bool = True
    says_length: bool = True
    cuts: list[int] = field(default_factory=list)
    """Bytes of each answer to come, one after another, after which the connection is cut."""
    corrupt_at: int | None = None
    """The byte at this offset of the file is sent wrong."""
    holds_after: int | None = None
    """After so many bytes of an answer that is not cut nothing comes until `go_on` is set."""
    go_on: threading.Event = field(default_factory=threading.Event)
    is_held: threading.Event = field(default_factory=threading.Event)
    status: int = 200
    packing: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class FileServer:
    """`files` by path; `asked` has the path and Range header of every request."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, ServedFile] = {}
        self.answers: dict[str, object] = {}
        """JSON by path, without its query."""
        self.asked: list[tuple[str, str | None]] = []

    def add(self, name: str, size: int, *, seed: int = 0) -> ServedFile:
        """Bytes that begin as a model's do."""
        file = ServedFile((b"GGUF" + random.Random(seed).randbytes(size))[:size])
        self.files[f"/{name}"] = file
        return file

    def remote(self, name: str, *, promised: bool = True) -> RemoteFile:
        file = self.files[f"/{name}"]
        return RemoteFile(
            url=f"{self.address}/{name}",
            file_name=name,
            size_bytes=len(file.data) if promised else None,
            sha256=file.sha256 if promised else None,
        )

    def ranges_of(self, name: str) -> list[str | None]:
        return [asked_range for path, asked_range in self.asked if path == f"/{name}"]


@contextmanager
def file_server() -> Iterator[FileServer]:
    """Listens on a free port of this machine until the block is left."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _answer(self, served)

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = FileServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="file-server")
    thread.start()
    try:
        yield served
    finally:
        for file in served.files.values():
            file.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(handler: http.server.BaseHTTPRequestHandler, served: FileServer) -> None:
    path, _, _ = handler.path.partition("?")
    served.asked.append((path, handler.headers.get("Range")))
    if path in served.answers:
        _send_json(handler, served.answers[path])
        return
    file = served.files.get(path)
    if file is None or file.status != 200:
        handler.send_error(404 if file is None else file.status)
        return
    start = _start_of(handler, file)
    if start is not None and start >= len(file.data):
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(file.data)}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    _send(handler, file, start)


def _start_of(handler: http.server.BaseHTTPRequestHandler, file: ServedFile) -> int | None:
    match = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
    condition = handler.headers.get("If-Range")
    is_same = condition is None or condition == file.etag
    return int(match[1]) if match is not None and file.takes_ranges and is_same else None


def _send(handler: http.server.BaseHTTPRequestHandler, file: ServedFile, start: int | None) -> None:
    data: bytes | bytearray = file.data
    if file.corrupt_at is not None:
        data = bytearray(data)
        data[file.corrupt_at] ^= 1
    body = memoryview(data)[start or 0 :]
    handler.send_response(200 if start is None else 206)
    if file.etag:
        handler.send_header("ETag", file.etag)
    if file.packing:
        handler.send_header("Content-Encoding", file.packing)
    if start is not None:
        handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
    if file.says_length:
        handler.send_header("Content-Length", str(len(body)))
    else:
        handler.send_header("Connection", "close")
        handler.close_connection = True
    handler.end_headers()
    cut = file.cuts.pop(0) if file.cuts else None
    try:
        if file.holds_after is not None and cut is None:
            handler.wfile.write(body[: file.holds_after])
            handler.wfile.flush()
            file.is_held.set()
            file.go_on.wait(WAIT_S)
            body = body[file.holds_after :]
        handler.wfile.write(body if cut is None else body[:cut])
        handler.wfile.flush()
    except OSError:  # the client has left
        handler.close_connection = True
        return
    if cut is not None:
        handler.close_connection = True


def _send_json(handler: http.server.BaseHTTPRequestHandler, value: object) -> None:
    body = json.dumps(value).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
