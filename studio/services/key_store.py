"""The server's keys on disk: created, changed and revoked by the window, read by the server at every request.

The file is written on the GUI thread; `ring` is an immutable value that the server's thread reads. Only digests are
written, and only the user may read the file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import SettingError
from studio.models.server_keys import Caller, KeyPlan, Lane, ServerKey
from studio.models.signal import Signal
from studio.services.safe_file import set_aside, write_atomically

_log = logging.getLogger(__name__)

SECRET_PREFIX = "layby-"
_SECRET_BYTES = 32
_HINT_CHARS = 4


class KeyStore:
    """`keys` in the order they were made. A broken file is set aside: then there are no keys, and `problem` says so."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.changed: Signal[[]] = Signal()
        """`keys` changed."""
        self.problem: SettingError | None = None
        self._path = path
        self._clock = clock
        self.keys: tuple[ServerKey, ...] = self._read()

    def create(self, plan: KeyPlan) -> tuple[ServerKey, str]:
        """A new key and its secret, which nobody can be told again.

        Raises SettingError for a value that is not allowed, a name that is taken, or a file that cannot be written.
        """
        secret = SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        try:
            key = ServerKey(
                key_id=secrets.token_hex(8),
                name=plan.name.strip(),
                digest=_digest(secret),
                hint=secret[-_HINT_CHARS:],
                created_s=self._clock(),
                lane=plan.lane,
                share_percent=plan.share_percent,
                max_requests=plan.max_requests,
            )
        except ValueError as error:
            raise SettingError(str(error)) from error
        if any(key.name.casefold() == other.name.casefold() for other in self.keys):
            raise SettingError(f"there is a key called {key.name!r} already; take another name")
        self._write((*self.keys, key))
        return key, secret

    def change(self, key_id: str, plan: KeyPlan) -> None:
        """Give a key another name, lane, share and cap; its secret stays. Raises as `create` does."""
        try:
            changed = tuple(
                replace(
                    key,
                    name=plan.name.strip(),
                    lane=plan.lane,
                    share_percent=plan.share_percent,
                    max_requests=plan.max_requests,
                )
                if key.key_id == key_id
                else key
                for key in self.keys
            )
        except ValueError as error:
            raise SettingError(str(error)) from error
        if len({key.name.casefold() for key in changed}) < len(changed):
            raise SettingError(f"there is a key called {plan.name!r} already; take another name")
        self._write(changed)

    def revoke(self, key_id: str) -> None:
        """The key opens nothing from now on; requests under way end by themselves."""
        self._write(tuple(key for key in self.keys if key.key_id != key_id))

    def caller(self, secret: str) -> Caller | None:
        """Whose secret that is; any thread."""
        digest = _digest(secret)
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest):
                return Caller.of_key(key)
        return None

    def _write(self, keys: tuple[ServerKey, ...]) -> None:
        records = [{**asdict(key), "lane": key.lane.value} for key in keys]
        try:
            write_atomically(self._path, json.dumps(records, indent=2).encode() + b"\n")
        except OSError as error:
            raise SettingError(
                f"the keys cannot be written to {self._path} ({system_fault(error)}); "
                "make room or make it writable, then try again"
            ) from error
        self.keys = keys
        self.changed.emit()

    def _read(self) -> tuple[ServerKey, ...]:
        try:
            records = json.loads(self._path.read_text("utf-8"))
            return tuple(
                ServerKey(**{**record, "lane": Lane(record["lane"])}) for record in records
            )
        except FileNotFoundError:
            return ()
        except OSError as error:
            self.problem = SettingError(
                f"the keys in {self._path} cannot be read: {system_fault(error)}"
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            aside = set_aside(self._path)
            _log.warning("the file of keys was not readable (%s), kept as %s", error, aside)
            self.problem = SettingError(
                f"the file of keys was not readable; it is kept as {aside}, and no key opens the "
                "server until new ones are made"
            )
        return ()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
