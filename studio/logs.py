"""Sets logging up: a rotating file for the window, standard error for the server.

Called once, by the program's entry. Logs stay on this machine; chat text and keys are never logged.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path

from studio.models.settings import LogLevel

_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_FILE_BYTES = 2_000_000
_FILES_KEPT = 3


class _CalmFile(logging.handlers.RotatingFileHandler):
    """On a full disk lines are lost; that is said once, and not with a trace for each of them."""

    _is_told = False

    def handleError(self, record: logging.LogRecord) -> None:
        del record
        if not self._is_told:
            self._is_told = True
            sys.stderr.write(f"layby: {self.baseFilename} cannot be written: {sys.exc_info()[1]}\n")


def log_to_file(path: Path, level: LogLevel) -> None:
    """Send all log records to `path`, rotated at 2 MB; to standard error if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = _CalmFile(
            path, maxBytes=_FILE_BYTES, backupCount=_FILES_KEPT, encoding="utf-8", delay=False
        )
    except OSError as error:
        log_to_stderr(level)
        logging.getLogger(__name__).warning("no log file, %s: %s", path, error)
        return
    _install(handler, level)


def log_to_stderr(level: LogLevel) -> None:
    """Send all log records to standard error."""
    _install(logging.StreamHandler(sys.stderr), level)


def _install(handler: logging.Handler, level: LogLevel) -> None:
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.value.upper())
    logging.captureWarnings(capture=True)
