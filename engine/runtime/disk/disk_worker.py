"""The thread that reads and writes saved states, in the order it is asked to. Never touches the engine.

First it finds out the model's hash, which every state carries. No torch.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError, ResumeRefused
from engine.runtime.disk.model_hash import HashStopped, model_sha256
from engine.runtime.disk.saved_state import Save, SavedState, StateBroken
from engine.runtime.disk.state_file import Recalled
from engine.runtime.disk.state_folder import StateFolder, discard
from engine.runtime.messages import StateRead, StateWritten

_LOG = logging.getLogger(__name__)
_HASHES = ".layby.hashes.json"
_END_WAIT_S = 10.0
"""So long the end of a model waits for a disk that does not answer."""

Pages = Sequence[NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The model as states name it."""

    name: str
    compute_id: str
    page_bytes: int
    is_finite: Callable[[NDArray[np.uint8]], bool]
    """Whether a page's bytes hold only finite numbers."""
    paths: tuple[Path, ...]
    """Its files with weights, in order."""


@dataclass(slots=True)
class DiskWorker:
    """`deliver` is called on the worker's thread with each outcome. `start` before, `close` after all else."""

    folder: StateFolder
    model: ModelFiles
    deliver: Callable[[StateWritten | StateRead], object]
    sha256: Future[str] = field(default_factory=Future)
    """Of the model's files; fails with OSError or HashStopped."""
    _tasks: queue.SimpleQueue[Callable[[], object] | None] = field(
        default_factory=queue.SimpleQueue
    )
    _is_closing: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with the hash."""
        self._thread = threading.Thread(target=self._run, name="layby-parked-files", daemon=True)
        self._thread.start()

    def write(self, save: Save, state: SavedState, pages: Pages) -> None:
        """Write beside the steps, from where the pages lie; the outcome is a StateWritten."""
        self._tasks.put(lambda: self._write(save, state, pages))

    def read(self, request_id: str) -> None:
        """Read and judge a state; the outcome is a StateRead."""
        self._tasks.put(lambda: self._read(request_id))

    def discard(self, half: Path) -> None:
        """Delete a file that is no request's state any more; large ones take a while."""
        self._tasks.put(lambda: discard(half))

    def close(self) -> None:
        """Give up what is being written and end. Reads get no answer any more."""
        self._is_closing.set()
        self._tasks.put(None)
        if self._thread is None:
            return
        self._thread.join(_END_WAIT_S)
        if self._thread.is_alive():
            _LOG.warning(
                "the disk has not answered for %.0f s; what is being read from or written to it is given up",
                _END_WAIT_S,
            )

    # --- on the thread

    def _run(self) -> None:
        self._find_hash()
        while (task := self._tasks.get()) is not None:
            task()

    def _find_hash(self) -> None:
        try:
            cache = self.folder.path / _HASHES
            self.sha256.set_result(
                model_sha256(self.model.paths, cache, lambda: not self._is_closing.is_set())
            )
        except (OSError, HashStopped) as error:
            _LOG.info("the model's hash is not known: %s", error)
            self.sha256.set_exception(error)
        except Exception as error:  # noqa: BLE001 - else whoever waits for the hash would wait for ever
            _LOG.exception("the model's hash is not known")
            self.sha256.set_exception(OSError(f"{type(error).__name__}: {error}"))

    def _write(self, save: Save, state: SavedState, pages: Pages) -> None:
        def is_wanted() -> bool:
            return not save.is_cancelled and not self._is_closing.is_set()

        if not is_wanted():
            return
        try:
            half = self.write_half(state, pages, is_wanted)
        except Exception as error:  # noqa: BLE001 - one state's trouble must not end the thread
            self.deliver(StateWritten(save, None, str(error) or type(error).__name__))
        else:
            self.deliver(StateWritten(save, half))

    def write_half(
        self, state: SavedState, pages: Pages, is_wanted: Callable[[], bool] = lambda: True
    ) -> Path | None:
        """See `StateFolder.write`; without the pages if only they do not fit on the disk. Any thread.

        Raises OSError, HashStopped.
        """
        state = replace(state, model_sha256=self.sha256.result())
        try:
            return self.folder.write(state, pages, is_wanted)
        except OSError:
            if not pages:
                raise
            return self.folder.write(state, (), is_wanted)

    def _read(self, request_id: str) -> None:
        if not self._is_closing.is_set():
            self.deliver(StateRead(self, request_id, self._recall(request_id)))

    def _recall(self, request_id: str) -> Recalled | EngineError:
        try:
            recalled = self.folder.read(request_id)
            return self._judge(recalled, request_id)
        except FileNotFoundError:
            return ResumeRefused("there is no saved state to go on with; send the prompt again")
        except StateBroken as error:
            return ResumeRefused(
                f"the saved state is damaged ({error}); send the prompt again", is_lost=True
            )
        except Exception as error:  # noqa: BLE001 - one state's trouble must not end the thread
            return ResumeRefused(f"the saved state cannot be read ({error}); send the prompt again")

    def _judge(self, recalled: Recalled, request_id: str) -> Recalled | EngineError:
        """The state as this model can use it. Raises StateBroken, OSError, HashStopped."""
        state, model = recalled.state, self.model
        if state.request_id != request_id:
            raise StateBroken(f"it is the state of {state.request_id[:80]!r}")
        found = self.sha256.result()
        if state.model_sha256 != found:
            return ResumeRefused(
                f"this reply was parked on {state.model_name[:80]} (SHA-256 {state.model_sha256[:12]}…), and "
                f"{model.name} (SHA-256 {found[:12]}…) is loaded; load the first one to go on"
            )
        if (state.compute, state.page_bytes) != (model.compute_id, model.page_bytes):
            return recalled.without_pages()
        # Kernels multiply masked positions by 0, so one page with an infinity could harm whoever gets it next.
        if not all(map(model.is_finite, recalled.pages)):
            raise StateBroken("its pages hold what no model computes")
        return recalled
