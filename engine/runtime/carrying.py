"""Requests that outlive their model being loaded anew: they go on from the same token, which is computed again.

All that is kept of one is what a state on disk holds of it, its tokens and its seed, so that pool, seats and kernels
may be others afterwards and the bytes are the same. Engine thread; imports no tensor library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.api import EngineEvent, Parked, Priority
from engine.core.types import SeqStatus, Sequence
from engine.errors import EngineError, ModelUnavailable
from engine.runs import ParkCause, ParkNow, ParkReason, Pin, SetPriority
from engine.runtime.disk.saved_state import SavedState, state_of
from engine.runtime.disk.state_file import Recalled
from engine.runtime.live_request import Generation, LiveRequest

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel
    from engine.runtime.stepper import Stepper


@dataclass(frozen=True, slots=True)
class Carried:
    """One request. Without a state nothing of it had been computed, and its prompt is read anew."""

    live: LiveRequest
    since_s: float
    before: Generation | None = None
    state: SavedState | None = None


@dataclass(slots=True)
class Carrier:
    """Who is on the way from one load to the next."""

    carried: dict[str, Carried] = field(default_factory=dict)
    """By request id."""
    files: tuple[object, ...] = ()
    """What tells the model's files from others; see `LoadedModel.files`."""
    folder: Path | None = None
    """Where the states of the parked lie too, if they do."""

    def take(
        self, model: LoadedModel | None, live: Iterable[LiveRequest], now_s: float
    ) -> list[EngineEvent]:
        """Take up those who can be carried; before their model is closed. Those taken up before stay."""
        if model is None:
            return []
        self.files, self.folder = model.files, model.options.preempt_disk
        news: list[EngineEvent] = []
        for one in live:
            if one.request.group is not None:
                continue
            seq = one.generation.seq if one.generation is not None else None
            if (
                seq is not None and seq.status is SeqStatus.RUNNING
            ):  # the others are known to be out
                news.append(_parked(seq))
                seq.num_parks += 1
            self.carried[one.request.request_id] = _carried(one, now_s)
        return news

    def bring(
        self, model: LoadedModel, stepper: Stepper, now_s: float
    ) -> tuple[list[tuple[LiveRequest, EngineError]], list[LiveRequest]]:
        """Put everybody in line of the model that is ready now; who cannot go on and why, and whose prompts to read."""
        failed: list[tuple[LiveRequest, EngineError]] = []
        to_read: list[LiveRequest] = []
        is_same = model.files == self.files
        for one in self.carried.values():
            try:
                if not is_same:
                    raise ModelUnavailable("another model was loaded meanwhile; ask again")
                if one.state is None:
                    to_read.append(one.live)
                else:
                    _adopt(one, model, stepper, now_s)
                    self._take_over(one.live, model)
            except EngineError as error:
                failed.append((one.live, error))
        self.carried = {}
        return failed, to_read

    def _take_over(self, live: LiveRequest, model: LoadedModel) -> None:
        """What lies on disk of it is its own still, and goes when it comes back."""
        disk, request_id = model.disk, live.request.request_id
        if disk is None or model.options.preempt_disk != self.folder:
            return
        if request_id in disk.earlier_ids:
            disk.take_over(live)


def _carried(live: LiveRequest, now_s: float) -> Carried:
    generation, live.generation, live.is_in_line = live.generation, None, False
    if generation is None:
        return Carried(live, now_s)
    seq = generation.seq
    request_id = seq.request_id
    if seq.is_held:
        live.wishes.append(ParkNow(request_id=request_id))
    if seq.is_pinned:
        live.wishes.append(Pin(request_id=request_id))
    if seq.priority != live.request.priority:
        live.wishes.append(SetPriority(request_id=request_id, priority=Priority(seq.priority)))
    if seq.started_s is None:
        return Carried(live, now_s)
    since_s = seq.parked.since_s if seq.parked is not None else now_s
    return Carried(live, since_s, generation, state_of(live.request, generation))


def _adopt(one: Carried, model: LoadedModel, stepper: Stepper, now_s: float) -> None:
    """Make it a parked request of the new model, with the times of before. Raises EngineError if it does not fit."""
    live, before = one.live, one.before
    assert before is not None
    assert one.state is not None
    generation, _ = model.recall(live, Recalled(one.state, np.empty((0, 0), np.uint8)))
    live.generation, generation.matcher = generation, before.matcher
    generation.least = before.least
    generation.parked_before_first_s = before.parked_before_first_s
    stepper.adopt(live)
    seq, old = generation.seq, before.seq
    seq.started_s, seq.first_token_s, seq.num_cached = (
        old.started_s,
        old.first_token_s,
        old.num_cached,
    )
    seq.parked_s += now_s - one.since_s
    if before.reader is not None:
        generation.reader = before.reader
        seq.num_read, seq.read_until, seq.read_tokens = (
            old.num_read,
            old.read_until,
            old.read_tokens,
        )


def _parked(seq: Sequence) -> Parked:
    reason = ParkReason(cause=ParkCause.RELOAD)
    return Parked(request_id=seq.request_id, held_tokens=len(seq.token_ids), place=0, reason=reason)
