"""What nobody caught: a line in the log and one calm notice, and for a crash of the process a trace in a file.

Any thread; no Qt. Installed by the composition root for as long as the window is open.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

_log = logging.getLogger(__name__)


class CrashWatch:
    """`tell` is called, on any thread, for every exception that nobody caught."""

    def __init__(self, folder: Path, tell: Callable[[], None]) -> None:
        self.last_run_crashed = False
        """Whether the last run left a trace; it is kept beside the log as `crash-before.log`."""
        self._path = folder / "crash.log"
        self._tell = tell
        self._file: IO[str] | None = None
        self._before = (sys.excepthook, threading.excepthook, sys.unraisablehook)

    def start(self) -> None:
        """Watch. Where the folder cannot be written, only exceptions are."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size:
                self._path.replace(self._path.with_name("crash-before.log"))
                self.last_run_crashed = True
                _log.error("the last run crashed; see crash-before.log beside this file")
            self._file = self._path.open("w", encoding="utf-8")
            faulthandler.enable(self._file)
        except OSError as error:
            _log.warning("crashes leave no trace: %s", error)
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        sys.unraisablehook = self._on_unraisable

    def stop(self) -> None:
        """Watch no longer; a run that ended well leaves no file."""
        sys.excepthook, threading.excepthook, sys.unraisablehook = self._before
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)

    def on_loop_error(self, _loop: object, context: dict[str, object]) -> None:
        """For the event loop: what its callbacks and forgotten tasks raise."""
        error = context.get("exception")
        found = error if isinstance(error, BaseException) else None
        _log.error("on the event loop: %s", context.get("message"), exc_info=found)
        self._tell()

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt | SystemExit):
            self._before[0](kind, error, trace)
            return
        _log.error("nobody caught this", exc_info=(kind, error, trace))
        self._tell()

    def _on_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        if issubclass(arguments.exc_type, SystemExit):
            return
        name = arguments.thread.name if arguments.thread is not None else "a thread"
        error = arguments.exc_value or arguments.exc_type()
        _log.error("%s ended by this", name, exc_info=error)
        self._tell()

    def _on_unraisable(self, arguments: sys.UnraisableHookArgs) -> None:
        _log.error("while tidying up %r", arguments.object, exc_info=arguments.exc_value)
