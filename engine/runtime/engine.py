"""The engine: one thread that owns the model, the scheduler and the pool, and the loop that drives them.

Commands come in through an inbox, one batch of events goes out per step. Only this thread calls torch. No other thread
touches a scheduler, a sequence or a tensor; `submit`, `abort`, `control` and `snapshot` only pass immutable messages.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.api import (
    Command,
    EngineEvent,
    EngineSnapshot,
    EngineState,
    Failed,
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
    ModelUnavailable,
)
from engine.runs import (
    ForgetSaved,
    ParkNow,
    Pin,
    ResumeNext,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    SteeringCommand,
    Suspend,
)
from engine.runtime.carrying import Carrier
from engine.runtime.event_bus import EventBus
from engine.runtime.groups import Groups
from engine.runtime.inbox import Inbox
from engine.runtime.intake import Intake, Prepared
from engine.runtime.live_request import LiveRequest
from engine.runtime.loading import (
    LoadCancelled,
    aborted_before_start,
    check_still_wanted,
    load_model,
    refusal_of,
)
from engine.runtime.messages import (
    Abort,
    CopyDone,
    Message,
    Shutdown,
    StateRead,
    StateWritten,
    Submit,
)
from engine.runtime.rate_meter import RateMeter
from engine.runtime.reception import LiveRequests, Reception
from engine.runtime.snapshots import SnapshotMaker
from engine.runtime.token_counter import TokenCounter

if TYPE_CHECKING:
    from engine.runtime.disk.disk_keeper import DiskKeeper
    from engine.runtime.loaded_model import LoadedModel
    from engine.runtime.stepper import Stepper

_REFRESH_S = 1.0
"""While somebody waits and nothing is computed, figures of the waits are renewed so often."""

_SHARE_GIVEN, _MOST_GIVEN_S = 1 / 8, 0.002
"""Of a step's time, and at most: how long the next one may be put off for those who pass its events on."""

_LOG = logging.getLogger(__name__)


class Engine(TokenCounter):
    """Implements `engine.api.EnginePort`. Starts its thread at once, with no model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._bus = EventBus()
        self._inbox = Inbox()
        self._intake = Intake(self._inbox.put)
        self._state = EngineState.NO_MODEL
        self._model: LoadedModel | None = None
        self._stepper: Stepper | None = None
        self._live: dict[str, LiveRequest] = {}
        self._groups = Groups()
        self._requests = LiveRequests(self._live, self._groups, clock)
        self._reception: Reception | None = None
        self._carrier = Carrier()
        self._arrivals = 0
        self._rate = RateMeter()
        self._snapshots = SnapshotMaker(self._rate, self._clock)
        self._snapshot = EngineSnapshot()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="layby-engine", daemon=True)
        self._thread.start()

    # The door: any thread.

    def submit(self, request: Request) -> None:
        if not self._inbox.put(Submit(request)):
            error = EngineStopped("the engine has shut down; start Layby again")
            self._bus.publish((Failed(request_id=request.request_id, error=error, partial=False),))

    def abort(self, request_id: str) -> None:
        self._inbox.put(Abort(request_id))

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._bus.subscribe(listener)

    def control(self, command: Command) -> None:
        self._inbox.put(command)

    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    def shutdown(self) -> None:
        self._inbox.put(Shutdown())
        self._thread.join()

    # The loop: engine thread only, from here on.

    def _run(self) -> None:
        while not self._stopping:
            began_s = self._clock()
            try:
                events = self._handle_messages()
                if self._stepper is not None and self._stepper.wait_s() <= 0:
                    events += self._stepper.step()
                if (disk := self._disk) is not None:
                    disk.keep_up(self._live)
            except Exception as error:  # noqa: BLE001 - whatever breaks, everybody is told and the thread lives
                events = self._break_down(error)
            self._publish(events)
            self._give_way(self._clock() - began_s)
        self._finish_thread()

    def _give_way(self, step_s: float) -> None:
        """Where steps take every core, let listeners pass the events on before the next one.

        They are quick where nothing is in their way, but in the midst of a step they would wait for a core, some
        milliseconds and at any point of their work, while threads of the step wait for the one that lost its core.
        """
        if self._model is not None and self._model.runner.takes_every_core:
            self._bus.wait_until_heard(min(step_s * _SHARE_GIVEN, _MOST_GIVEN_S))

    def _break_down(self, error: Exception) -> list[EngineEvent]:
        """What nobody foresaw: the model's state cannot be trusted any more, so all it served end and it is freed."""
        _LOG.exception("the engine broke down")
        failure = DeviceFailure(
            f"the engine broke down ({type(error).__name__}: {error}); load the model again"
        )
        events = self._drop_model(failure, is_sound=False)
        self._state = EngineState.FAILED
        return [*events, ModelChanged(state=self._state, model=None, error=failure)]

    def _finish_thread(self) -> None:
        if self._model is not None:
            self._model.grammars.close()  # the intake ends what it has at hand
        self._intake.close()
        self._inbox.close()
        self._state = EngineState.STOPPED
        error = EngineStopped("the engine has shut down; start Layby again")
        events = self._drop_model(error)
        self._inbox.take()
        events += [
            Failed(request_id=message.request.request_id, error=error, partial=False)
            for message in self._inbox.pending
            if isinstance(message, Submit)
        ]
        self._publish([*events, ModelChanged(state=EngineState.STOPPED, model=None)])

    def _handle_messages(self) -> list[EngineEvent]:
        """Apply every message waiting; when there is nothing to compute, wait for one."""
        wait_s = math.inf if self._stepper is None else self._stepper.wait_s()
        if wait_s > 0:
            self._await_message(wait_s)
        self._inbox.take()
        if self._inbox.pending and self._stepper is not None:
            self._stepper.wake()
        events: list[EngineEvent] = []
        while self._inbox.pending and not self._stopping:
            events += self._apply(self._inbox.pending.popleft())
        return events

    def _await_message(self, wait_s: float) -> None:
        if self._stepper is not None:
            self._stepper.give_back()
        if self._live:
            wait_s = min(wait_s, _REFRESH_S)
        self._inbox.wait(wait_s)

    def _apply(self, message: Message) -> list[EngineEvent]:
        match message:
            case Submit(request=request):
                return self._accept(request)
            case Prepared():
                return self._reception.admit(message) if self._reception is not None else []
            case Abort(request_id=request_id):
                return self._abort(request_id)
            case CopyDone():
                if self._stepper is not None:
                    self._stepper.finish_copy(message)
                return []
            case StateWritten() | ForgetSaved():
                return self._disk.apply(message) if self._disk is not None else []
            case StateRead():
                reception = self._reception
                return reception.admit_recalled(message) if reception is not None else []
            case Suspend(request_id=request_id):
                return self._suspend(request_id)
            case LoadModel(only_if_idle=True) | UnloadModel(only_if_idle=True) if self._live:
                return [ModelChanged(state=self._state, model=self.snapshot().model)]
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
        self._let_go(request.request_id)
        live = LiveRequest(request, self._arrivals, self._clock())
        self._live[request.request_id] = live
        if (refusal := self._groups.join(live)) is not None:
            return self._requests.fail(live, refusal)
        if self._reception is None:
            error = ModelUnavailable("no model is loaded; load one and ask again")
            return self._requests.refuse(live, error)
        return self._reception.read_prompt(live)

    def _steer(self, command: SteeringCommand) -> None:
        if self._reception is not None:
            self._reception.steer(command)

    def _abort(self, request_id: str) -> list[EngineEvent]:
        live = self._live.get(request_id)
        if live is None:
            self._let_go(request_id)
            return []
        if live.generation is not None and self._model is not None:
            self._model.scheduler.abort(request_id, self._clock())
        if self._disk is not None:
            self._disk.forget(request_id)
        ended = self._requests.finish(live, FinishReason.ABORTED)
        ready = self._groups.leave(live)
        return [ended, *(self._reception.enter(ready) if self._reception is not None else [])]

    def _let_go(self, request_id: str) -> None:
        """A request that has ended and stays for its owner is kept no longer."""
        if self._stepper is not None:
            self._stepper.let_go(request_id)

    # The disk.

    @property
    def _disk(self) -> DiskKeeper | None:
        return None if self._model is None else self._model.disk

    def _suspend(self, request_id: str) -> list[EngineEvent]:
        """End a request for good here, its state on disk where that can be; else it ends as aborted, or told why."""
        live = self._live.get(request_id)
        told = self._disk.suspend(live) if live is not None and self._disk is not None else None
        if live is None or told is None:
            return self._abort(request_id)
        if live.generation is not None and self._model is not None:
            self._model.scheduler.abort(request_id, self._clock())
        return self._requests.fail(live, told)

    # The model.

    def _load(self, command: LoadModel) -> list[EngineEvent]:
        model = self._model
        if model is not None and (refused := refusal_of(command, model)) is not None:
            return [ModelChanged(state=self._state, model=model.info, error=refused)]
        events: list[EngineEvent] = []
        if command.carries_on:
            events = self._carrier.take(self._model, self._live.values(), self._clock())
        events += self._drop_model(
            ModelUnavailable("another model is being loaded; ask again when it is ready"),
            is_final=not command.carries_on,
        )
        self._state = EngineState.LOADING
        self._publish([*events, ModelChanged(state=self._state, model=None, progress=0.0)])
        try:
            loaded = load_model(command, self._on_load_progress, self._inbox.put)
        except LoadCancelled:  # by a message that comes next; whoever is carried is its
            self._state = EngineState.NO_MODEL
            return [ModelChanged(state=self._state, model=None)]
        if isinstance(loaded, EngineError):
            self._state = EngineState.FAILED
            failed = ModelChanged(state=self._state, model=None, error=loaded)
            return [*self._drop_model(loaded), failed]
        # Here and not above, as for the model: it takes a while to import.
        from engine.runtime.stepper import Stepper

        self._model, self._state = loaded, EngineState.READY
        self._stepper = Stepper(loaded, self._live, self._rate, self._clock)
        self._reception = Reception(self._requests, self._intake, loaded, self._stepper)
        carried = self._reception.bring(self._carrier)
        self._publish([])
        return [*loaded.first_news(), *carried]

    def _on_load_progress(self, progress: float) -> None:
        """Between two tensors: tell the world, and look whether anybody wants this load to end."""
        self._inbox.take()
        events: list[EngineEvent] = [
            ModelChanged(state=EngineState.LOADING, model=None, progress=progress)
        ]
        events += aborted_before_start(self._inbox.pending, self._groups, self._clock())
        self._publish(events)
        check_still_wanted(self._inbox.pending)

    def _drop_model(
        self, error: EngineError, *, is_sound: bool = True, is_final: bool = True
    ) -> list[EngineEvent]:
        """Free the model; whoever it served is told `error`, or where it can be gone on with that it was put aside.

        Unless it `is_final`, those who are carried to the next one stay.
        """
        events: list[EngineEvent] = []
        if is_final:
            self._carrier.carried = {}
        for live in tuple(self._live.values()):
            if live.request.request_id in self._carrier.carried:
                continue
            told = self._disk.suspend(live, is_sound=is_sound) if self._disk is not None else None
            events += self._requests.fail(live, told or error)
        self._groups.end_all(error)
        if self._model is not None:
            self._model.close()
        self._model = self._stepper = self._reception = None
        return events

    def _publish(self, events: list[EngineEvent]) -> None:
        stays = [] if self._stepper is None else self._stepper.stays()
        self._snapshot = self._snapshots.make(
            self._state, self._model, [*self._live.values(), *stays], events=events
        )
        self._bus.publish(tuple(events))
