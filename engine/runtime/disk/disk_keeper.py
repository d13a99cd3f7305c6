"""Keeps durable requests on disk while they are parked, and brings them back. Engine thread.

A park is written beside the steps, from where its pages lie. They stay the parked sequence's own as long as it is
parked, so what was written is sound if it is still parked, in the same way, once all has been written; if not, it is
thrown away. The file goes when the request comes back or ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.api import DiskTrouble, EngineEvent
from engine.core.config import PAGE_TOKENS
from engine.core.parked import Fate
from engine.core.scheduler import Scheduler
from engine.core.types import SeqStatus, Sequence
from engine.errors import ParkDiskFailed, Suspended
from engine.runs import ForgetSaved
from engine.runtime.disk.disk_worker import DiskWorker
from engine.runtime.disk.model_hash import HashStopped
from engine.runtime.disk.recalling import put_aside
from engine.runtime.disk.saved_state import Save, SavedState, state_of
from engine.runtime.disk.state_folder import discard
from engine.runtime.live_request import LiveRequest
from engine.runtime.messages import StateRead, StateWritten
from engine.runtime.model_runner import ModelRunner
from engine.runtime.page_copier import PageCopier

_LOG = logging.getLogger(__name__)
_HASH_WAIT_S = 10.0
"""So long the end of a model waits for its own hash, without which nothing can be kept; all requests together."""

_LATE = "the hash of the model's files is not known yet; the first time it takes as long as reading them"


class DiskKeeper:
    """Serves one loaded model. Made by `start`."""

    def __init__(
        self, worker: DiskWorker, scheduler: Scheduler, runner: ModelRunner, copier: PageCopier
    ) -> None:
        self._worker = worker
        self._scheduler = scheduler
        self._runner = runner
        self._copier = copier
        self._saves: dict[str, Save] = {}
        """Parks that are on disk or on the way there, by request."""
        self._earlier = dict.fromkeys(worker.folder.request_ids())
        self._hash_wait_s = _HASH_WAIT_S
        self._has_told = False

    @classmethod
    def start(
        cls, worker: DiskWorker, scheduler: Scheduler, runner: ModelRunner, copier: PageCopier
    ) -> DiskKeeper:
        """Let the worker begin."""
        keeper = cls(worker, scheduler, runner, copier)
        worker.start()
        return keeper

    @property
    def earlier_ids(self) -> tuple[str, ...]:
        """Requests of before that can be gone on with."""
        return tuple(self._earlier)

    def keep_up(self, live: Mapping[str, LiveRequest]) -> None:
        """Begin to write what has been parked, delete what has come back or ended; to be called between steps."""
        if not (self._saves or self._scheduler.has_outside):
            return
        parked = {
            seq.request_id: seq
            for seq in self._scheduler.line(SeqStatus.PARKED)
            if not seq.is_staying and seq.started_s is not None
        }
        for request_id, save in tuple(self._saves.items()):
            if request_id not in parked:
                self._drop(request_id, save)
        for request_id, seq in parked.items():
            request = live[request_id]
            if request.request.is_durable and not self._is_known(seq):
                self._begin(request, seq)

    def apply(self, message: StateWritten | ForgetSaved) -> list[EngineEvent]:
        """What has become of a write, or what nobody will come back for."""
        if isinstance(message, StateWritten):
            return self._settle(message)
        for request_id in message.request_ids:
            self.forget(request_id)
        return []

    def suspend(
        self, live: LiveRequest, *, is_sound: bool = True
    ) -> Suspended | ParkDiskFailed | None:
        """Keep a request whose model goes away, running or not; what it is to be told, None if it is not to be kept.

        After a breakdown, not `is_sound`, only what was written before counts.
        """
        request = live.request
        if not request.is_durable:
            return None
        if live.generation is None:
            is_there = request.resumes and self._worker.folder.has(request.request_id)
            return put_aside() if is_there else None
        seq = live.generation.seq
        save = self._saves.pop(request.request_id, None)
        if save is not None and save.is_on_disk and _stands(save):
            return put_aside()
        if seq.family is not None or not live.is_in_line or not is_sound:
            return None
        try:
            self._write_now(live, seq)
        except (OSError, HashStopped) as error:
            return self._cannot_keep(request.request_id, str(error))
        return put_aside()

    def recall(self, request_id: str) -> None:
        """Have a state read; the answer is a StateRead."""
        self._worker.read(request_id)

    def is_mine(self, read: StateRead) -> bool:
        return read.reader is self._worker

    def take_over(self, live: LiveRequest) -> None:
        """A request that goes on is parked and its state is on disk: there it stays until the request comes back."""
        self._earlier.pop(live.request.request_id, None)
        seq = live.generation.seq if live.generation is not None else None
        if seq is not None and seq.parked is not None:
            self._saves[seq.request_id] = Save(seq, seq.parked, is_on_disk=True)

    def forget(self, request_id: str) -> None:
        """Delete a state of before that nobody will come back for."""
        if request_id in self._earlier:
            del self._earlier[request_id]
            self._withdraw(request_id)

    def close(self) -> None:
        """Leave the folder as it is, without what is half written."""
        for save in self._saves.values():
            save.is_cancelled = True
        self._worker.close()
        self._worker.folder.close()

    # --- how

    def _settle(self, written: StateWritten) -> list[EngineEvent]:
        """A state has been written: it counts if its pages were left alone meanwhile."""
        save, half = written.save, written.half
        is_current = self._saves.get(save.seq.request_id) is save and _stands(save)
        if half is None:
            return self._tell(written.error) if is_current and written.error else []
        if not is_current:
            discard(half)
            return []
        try:
            self._worker.folder.put(half, save.seq.request_id)
        except OSError as error:
            discard(half)
            return self._tell(str(error))
        save.is_on_disk = True
        return []

    def _write_now(self, live: LiveRequest, seq: Sequence) -> None:
        """Raises OSError, also where the hash is late, HashStopped."""
        self._worker.sha256.result(self._hash_wait_s)
        half = self._worker.write_half(self._state(live, seq), self._pages(seq))
        assert half is not None, "it is wanted"
        self._worker.folder.put(half, seq.request_id)

    def _cannot_keep(self, request_id: str, why: str) -> ParkDiskFailed:
        if not self._worker.sha256.done():
            self._hash_wait_s = 0.0  # whoever comes next has waited with this one
            why = _LATE
        error = ParkDiskFailed(
            f"the reply ends here: it cannot be kept on disk ({why}); its text stays, ask again for the rest"
        )
        _LOG.warning("%s: %s", request_id, error)
        return error

    def _is_known(self, seq: Sequence) -> bool:
        save = self._saves.get(seq.request_id)
        return save is not None and save.parked is seq.parked

    def _begin(self, live: LiveRequest, seq: Sequence) -> None:
        before = self._saves.get(seq.request_id)
        if before is not None:
            before.is_cancelled = True
        if seq.family is not None or seq.parked is None:
            return
        save = self._saves[seq.request_id] = Save(seq, seq.parked)
        self._worker.write(save, self._state(live, seq), self._pages(seq))

    def _drop(self, request_id: str, save: Save) -> None:
        del self._saves[request_id]
        save.is_cancelled = True
        self._withdraw(request_id)

    def _withdraw(self, request_id: str) -> None:
        half = self._worker.folder.withdraw(request_id)
        if half is not None:
            self._worker.discard(half)

    def _pages(self, seq: Sequence) -> list[NDArray[np.uint8]]:
        """Its full pages, from the first on, where they lie; those that a copy is still filling hold nothing yet."""
        is_kept = seq.parked is None or seq.parked.fate is Fate.SWAP
        if not is_kept or seq.status is SeqStatus.RESTORING:
            return []
        count = seq.num_computed // PAGE_TOKENS
        in_pool = self._runner.view_pages(seq.page_table[:count])
        return in_pool + self._copier.view_saved(seq.saved[: count - len(in_pool)])

    def _state(self, live: LiveRequest, seq: Sequence) -> SavedState:
        assert live.generation is not None, f"{seq.request_id} is in line"
        model = self._worker.model
        return replace(
            state_of(
                live.request, live.generation
            ),  # its hash is known by the worker, its pages are counted there
            model_name=model.name,
            compute=model.compute_id,
            page_bytes=model.page_bytes,
        )

    def _tell(self, why: str) -> list[EngineEvent]:
        """Once is enough: the next park tries again by itself."""
        if self._has_told:
            return []
        self._has_told = True
        folder = self._worker.folder.path
        error = ParkDiskFailed(
            f"parked chats cannot be kept in {folder} ({why}); they are kept in memory alone. Make room there or "
            "choose another folder"
        )
        _LOG.warning("%s", error)
        return [DiskTrouble(error=error)]


def _stands(save: Save) -> bool:
    """Whether the sequence is still parked as it was, so that nobody has written to its pages."""
    return save.seq.status is SeqStatus.PARKED and save.seq.parked is save.parked
