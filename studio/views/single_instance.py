"""One window for each set of folders: a second start hands its errand to the first over a local socket. GUI thread.

The socket belongs to the user alone; it is a file beside the chats (a named pipe on Windows), never a port. Whoever has
the chats open may remove one that a dead program left, so the first opens its chats before it listens. Must not import
services.
"""

from __future__ import annotations

import getpass
import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from studio.models.errand import MOST_BYTES, Errand

_log = logging.getLogger(__name__)

_CONNECT_MS = 1_000
_ANSWER_MS = 5_000
_MOMENT_MS = 50
_DONE = b"done\n"
_LONGEST_PATH = 100
"""A socket's path has room for 104 bytes or a few more, by system."""


def address_for(folder: Path) -> str:
    """Where the Layby whose data lies in `folder` listens."""
    digest = hashlib.sha256(f"{getpass.getuser()} {folder}".encode()).hexdigest()[:20]
    if sys.platform == "win32":
        return f"layby-{digest}"
    path = folder / "window.socket"
    if len(os.fsencode(path)) > _LONGEST_PATH:
        path = Path(tempfile.gettempdir()) / f"layby-{digest}.socket"
    return str(path)


def hand_over(address: str, errand: Errand) -> bool:
    """Give the errand to the window that listens there; False if there is none, or it is somebody else's.

    Any thread of Qt's. An errand may be given again where no answer came in time: it is done once.
    """
    if not _is_ours(address):
        return False
    socket = QLocalSocket()
    socket.connectToServer(address)
    if not socket.waitForConnected(_CONNECT_MS):
        return False
    socket.write(errand.to_bytes())
    socket.waitForBytesWritten(_ANSWER_MS)
    answer = b""
    for _ in range(_ANSWER_MS // _MOMENT_MS):  # moments: no other Python thread runs during one
        if socket.waitForReadyRead(_MOMENT_MS):
            answer += socket.readAll().data()
        is_over = socket.state() is QLocalSocket.LocalSocketState.UnconnectedState
        if _DONE in answer or is_over:
            break
    socket.abort()
    return _DONE in answer


def _is_ours(address: str) -> bool:
    """On Windows a pipe of another user refuses; a socket file may have been put there by one."""
    if sys.platform == "win32":
        return True
    try:
        return os.lstat(address).st_uid == os.getuid()
    except OSError:
        return False


class InstanceServer(QObject):
    """Calls `receive` once with each errand. One that cannot listen says so in the log and nowhere else."""

    def __init__(self, address: str, receive: Callable[[Errand], None], parent: QObject) -> None:
        super().__init__(parent)
        self._receive = receive
        self._received: set[str] = set()
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        QLocalServer.removeServer(address)
        if not self._server.listen(address):
            _log.info("no second start can hand over: %s", self._server.errorString())

    @property
    def is_listening(self) -> bool:
        return self._server.isListening()

    def close(self) -> None:
        """Listen no longer; the socket's file goes."""
        self._server.close()

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            _Call(socket, self._on_errand)

    def _on_errand(self, errand: Errand) -> None:
        if errand.errand_id not in self._received:
            self._received.add(errand.errand_id)
            self._receive(errand)


class _Call(QObject):
    """One that has called: its line, an answer, the end. It lives as long as the connection."""

    def __init__(self, socket: QLocalSocket, receive: Callable[[Errand], None]) -> None:
        super().__init__(socket)
        self._socket = socket
        self._receive = receive
        self._line = b""
        socket.readyRead.connect(self._on_ready)
        socket.disconnected.connect(socket.deleteLater)
        self._on_ready()

    def _on_ready(self) -> None:
        self._line += self._socket.readAll().data()
        if len(self._line) > MOST_BYTES:
            self._socket.abort()
        elif self._line.endswith(b"\n"):
            errand = Errand.from_bytes(self._line)
            self._line = b""
            if errand is None:
                self._socket.abort()
                return
            self._socket.write(_DONE)
            self._socket.flush()
            self._receive(errand)
