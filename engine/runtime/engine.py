"""The engine: one thread that owns the model, the scheduler and the pool, and the loop that drives them.

Commands come in through an inbox, one batch of events goes out per step. Only this thread calls torch. No other thread
touches a scheduler, a sequence or a tensor; `submit`, `abort`, `control` and `snapshot` only pass immutable messages.
"""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.api import (
    Command,
    EngineEvent,
    EngineSnapshot,
    EngineState,
    Failed,
    Finished,
    FinishReason,
    Listener,
    LoadModel,
    ModelChanged,
    Request,
    UnloadModel,
    Unsubscribe,
)
from engine.errors import (
    DeviceFailure,
    EngineError,
    EngineStopped,
    ModelError,
    ModelUnavailable,
    RequestError,
)
from engine.runs import (
    ParkNow,
    Pin,
    ResumeNext,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    SteeringCommand,
)
from engine.runtime.event_bus import EventBus
from engine.runtime.groups import Groups
from engine.runtime.intake import Intake, Prepared
from engine.runtime.live_request import LiveRequest
from engine.runtime.messages import Abort, CopyDone, Message, Shutdown, Submit
from engine.runtime.rate_meter import RateMeter
from engine.runtime.snapshots import SnapshotMaker

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel
    from engine.runtime.stepper import Stepper


_REFRESH_S = 1.0
"""While somebody waits and nothing is computed, figures of the waits are renewed so often."""


_LOG = logging.getLogger(__name__)


class _LoadCancelled(Exception):
    """Raised inside a load by its own progress callback."""


class Engine:
    """Implements `engine.api.EnginePort`. Starts its thread at once, with no model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._bus = EventBus()
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._pending: deque[Message] = deque()
        """Taken out of the inbox, not yet applied."""
        self._intake = Intake(self._inbox.put)
        self._state = EngineState.NO_MODEL
        self._model: LoadedModel | None = None
        self._stepper: Stepper | None = None
        self._live: dict[str, LiveRequest] = {}
        self._groups = Groups()
        self._arrivals = 0
        self._rate = RateMeter()
        self._snapshots = SnapshotMaker(self._rate)
        self._snapshot = EngineSnapshot()
        self._stopping = False
        self._door = (
            threading.Lock()
        )  # held for the moment of a put, so that no message slips in after the end
        self._thread = threading.Thread(target=self._run, name="layby-engine", daemon=True)
        self._thread.start()

    # The door: any thread.

    def submit(self, request: Request) -> None:
        if not self._send(Submit(request)):
            error = EngineStopped("the engine has shut down; start Layby again")
            self._bus.publish((Failed(request_id=request.request_id, error=error, partial=False),))

    def abort(self, request_id: str) -> None:
        self._send(Abort(request_id))

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._bus.subscribe(listener)

    def control(self, command: Command) -> None:
        self._send(command)

    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    def shutdown(self) -> None:
        self._send(Shutdown())
        self._thread.join()

    def _send(self, message: Message) -> bool:
        with self._door:
            if self._state is EngineState.STOPPED:
                return False
            self._inbox.put(message)
            return True

    # The loop: engine thread only, from here on.

    def _run(self) -> None:
        while not self._stopping:
            try:
                events = self._handle_messages()
                if self._wait_s() <= 0 and self._stepper is not None:
                    events += self._stepper.step()
            except Exception as error:  # noqa: BLE001 - whatever breaks, everybody is told and the thread lives
                events = self._break_down(error)
            self._publish(events)
        self._finish_thread()

    def _break_down(self, error: Exception) -> list[EngineEvent]:
        """What nobody foresaw: the model's state cannot be trusted any more, so all it served end and it is freed."""
        _LOG.exception("the engine broke down")
        failure = DeviceFailure(
            f"the engine broke down ({type(error).__name__}: {error}); load the model again"
        )
        events = self._drop_model(failure)
        self._state = EngineState.FAILED
        return [*events, ModelChanged(state=self._state, model=None, error=failure)]

    def _finish_thread(self) -> None:
        self._intake.close()
        with self._door:
            self._state = EngineState.STOPPED
        error = EngineStopped("the engine has shut down; start Layby again")
        events = self._drop_model(error)
        self._take_messages()
        events += [
            Failed(request_id=message.request.request_id, error=error, partial=False)
            for message in self._pending
            if isinstance(message, Submit)
        ]
        self._publish([*events, ModelChanged(state=EngineState.STOPPED, model=None)])

    def _take_messages(self) -> None:
        while not self._inbox.empty():
            self._pending.append(self._inbox.get())

    def _wait_s(self) -> float:
        """Seconds until there is a step to compute, unless a message comes before; infinite if only a message can."""
        return math.inf if self._stepper is None else self._stepper.wait_s()

    def _handle_messages(self) -> list[EngineEvent]:
        """Apply every message waiting; when there is nothing to compute, wait for one."""
        wait_s = self._wait_s()
        if wait_s > 0:
            self._await_message(wait_s)
        self._take_messages()
        if self._pending and self._stepper is not None:
            self._stepper.wake()
        events: list[EngineEvent] = []
        while self._pending and not self._stopping:
            events += self._apply(self._pending.popleft())
        return events

    def _await_message(self, wait_s: float) -> None:
        if self._stepper is not None:
            self._stepper.give_back()
        if self._live:
            wait_s = min(wait_s, _REFRESH_S)
        with suppress(queue.Empty):
            self._pending.append(self._inbox.get(timeout=None if wait_s == math.inf else wait_s))

    def _apply(self, message: Message) -> list[EngineEvent]:
        match message:
            case Submit(request=request):
                return self._accept(request)
            case Prepared():
                return self._admit(message)
            case Abort(request_id=request_id):
                return self._abort(request_id)
            case CopyDone():
                if self._stepper is not None:
                    self._stepper.finish_copy(message)
                return []
            case LoadModel():
                return self._load(message)
            case UnloadModel():
                events = self._drop_model(
                    ModelUnavailable("the model was unloaded; load one and ask again")
                )
                self._state = EngineState.NO_MODEL
                return [*events, ModelChanged(state=self._state, model=None)]
            case Shutdown():
                self._stopping = True
                return []
            case SetParkBudget() | SetVictimPolicy():
                self._steer(message)
                return []
            case ParkNow() | ResumeNext() | Pin() | SetPriority():
                live = self._live.get(message.request_id)
                if live is not None and not live.is_in_line:
                    live.wishes.append(message)
                else:
                    self._steer(message)
                return []

    # Requests.

    def _accept(self, request: Request) -> list[EngineEvent]:
        self._arrivals += 1
        live = LiveRequest(request, self._arrivals, self._clock())
        self._live[request.request_id] = live
        if (refusal := self._groups.join(live)) is not None:
            return self._fail(live, refusal)
        if self._model is None:
            error = ModelUnavailable("no model is loaded; load one and ask again")
            return self._refuse(live, error)
        self._intake.prepare(self._model.prepare_task(live))
        return []

    def _admit(self, prepared: Prepared) -> list[EngineEvent]:
        live = self._live.get(prepared.request_id)
        if (
            live is None
            or live.generation is not None
            or self._model is None
            or self._stepper is None
        ):
            return []  # aborted, or its model was unloaded, while the prompt was being read
        if prepared.error is not None:
            return self._refuse(live, prepared.error)
        try:
            live.generation = self._model.generation(live, prepared.token_ids)
        except EngineError as error:
            return self._refuse(live, error)
        except Exception as error:  # noqa: BLE001 - one request's trouble is its own
            return self._refuse(live, RequestError(f"{type(error).__name__}: {error}"))
        self._enter(self._groups.ready(live))
        return []

    def _enter(self, ready: tuple[LiveRequest, ...]) -> None:
        """Put requests in line, and do with them what was asked for meanwhile."""
        for live in ready:
            assert self._stepper is not None, "whoever's prompt is read has a model"
            self._stepper.add(live)
            for wish in live.wishes:
                self._steer(wish)

    def _refuse(self, live: LiveRequest, error: EngineError) -> list[EngineEvent]:
        """End a request whose prompt cannot be read, and those that were asked together with it."""
        return [
            event
            for member in self._groups.refuse(live, error)
            for event in self._fail(member, error)
        ]

    def _steer(self, command: SteeringCommand) -> None:
        if self._model is not None:
            self._model.steer(command, self._clock())

    def _abort(self, request_id: str) -> list[EngineEvent]:
        live = self._live.pop(request_id, None)
        if live is None:
            return []
        now_s = self._clock()
        if live.generation is not None and self._model is not None:
            self._model.scheduler.abort(request_id, now_s)
        self._enter(self._groups.leave(live))
        return [
            Finished(request_id=request_id, reason=FinishReason.ABORTED, usage=live.usage(now_s))
        ]

    def _fail(self, live: LiveRequest, error: EngineError) -> list[EngineEvent]:
        del self._live[live.request.request_id]
        return [Failed(request_id=live.request.request_id, error=error, partial=live.has_sent_text)]

    # The model.

    def _load(self, command: LoadModel) -> list[EngineEvent]:
        events = self._drop_model(
            ModelUnavailable("another model is being loaded; ask again when it is ready")
        )
        self._state = EngineState.LOADING
        self._publish([*events, ModelChanged(state=self._state, model=None, progress=0.0)])
        # Threads that spin while they wait halve the speed beside one busy program; read when torch is imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        # Here and not above: torch takes a second to import, on this thread, when the window is up.
        from engine.runtime.loaded_model import LoadedModel
        from engine.runtime.stepper import Stepper

        try:
            self._model = LoadedModel.load(command, self._on_load_progress, self._inbox.put)
        except _LoadCancelled:
            self._state = EngineState.NO_MODEL
            return [ModelChanged(state=self._state, model=None)]
        except EngineError as error:
            return self._load_failed(error)
        except Exception as error:  # noqa: BLE001 - whatever a model's files do, the engine lives on
            return self._load_failed(ModelError(f"{command.path}: {type(error).__name__}: {error}"))
        self._state = EngineState.READY
        self._stepper = Stepper(self._model, self._live, self._rate, self._clock)
        self._publish([])
        return [ModelChanged(state=self._state, model=self._model.info, progress=1.0)]

    def _load_failed(self, error: EngineError) -> list[EngineEvent]:
        self._state = EngineState.FAILED
        return [ModelChanged(state=self._state, model=None, error=error)]

    def _on_load_progress(self, progress: float) -> None:
        """Between two tensors: tell the world, and look whether anybody wants this load to end."""
        self._take_messages()
        events: list[EngineEvent] = [
            ModelChanged(state=EngineState.LOADING, model=None, progress=progress)
        ]
        for message in tuple(self._pending):
            if isinstance(message, Abort) and (submit := self._pending_submit(message.request_id)):
                self._pending.remove(submit)
                self._groups.miss(submit.request)
                now_s = self._clock()
                usage = LiveRequest(submit.request, 0, now_s).usage(now_s)
                events.append(
                    Finished(
                        request_id=message.request_id, reason=FinishReason.ABORTED, usage=usage
                    )
                )
        self._publish(events)
        if any(isinstance(one, UnloadModel | LoadModel | Shutdown) for one in self._pending):
            raise _LoadCancelled

    def _pending_submit(self, request_id: str) -> Submit | None:
        """The request of that id, if it waits for the model to be loaded."""
        for message in self._pending:
            if isinstance(message, Submit) and message.request.request_id == request_id:
                return message
        return None

    def _drop_model(self, error: EngineError) -> list[EngineEvent]:
        """Free the model; whoever it served is told `error`."""
        events = [event for live in tuple(self._live.values()) for event in self._fail(live, error)]
        self._groups.end_all(error)
        if self._model is not None:
            self._model.close()
        self._model = self._stepper = None
        return events

    def _publish(self, events: list[EngineEvent]) -> None:
        self._snapshot = self._snapshots.make(
            self._state, self._model, self._live.values(), now_s=self._clock(), events=events
        )
        self._bus.publish(tuple(events))
