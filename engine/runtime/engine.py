"""The engine: one thread that owns the model, the scheduler and the pool, and the loop that drives them.

Commands come in through an inbox, one batch of events goes out per step. Only this thread calls torch. No other thread
touches a scheduler, a sequence or a tensor; `submit`, `abort`, `control` and `snapshot` only pass immutable messages.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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
    PoolUsage,
    Request,
    UnloadModel,
    Unsubscribe,
)
from engine.errors import EngineError, EngineStopped, ModelError, ModelUnavailable
from engine.runs import SteeringCommand
from engine.runtime.event_bus import EventBus
from engine.runtime.intake import Intake, Prepared
from engine.runtime.live_request import LiveRequest
from engine.runtime.rate_meter import RateMeter

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel
    from engine.runtime.stepper import Stepper


@dataclass(frozen=True, slots=True)
class _Submit:
    request: Request


@dataclass(frozen=True, slots=True)
class _Abort:
    request_id: str


@dataclass(frozen=True, slots=True)
class _Shutdown:
    pass


_Message = _Submit | _Abort | _Shutdown | Prepared | LoadModel | UnloadModel | SteeringCommand


class _LoadCancelled(Exception):
    """Raised inside a load by its own progress callback."""


class Engine:
    """Implements `engine.api.EnginePort`. Starts its thread at once, with no model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._bus = EventBus()
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._pending: deque[_Message] = deque()
        """Taken out of the inbox, not yet applied."""
        self._intake = Intake(self._inbox.put)
        self._state = EngineState.NO_MODEL
        self._model: LoadedModel | None = None
        self._stepper: Stepper | None = None
        self._live: dict[str, LiveRequest] = {}
        self._arrivals = 0
        self._rate = RateMeter()
        self._snapshot = EngineSnapshot()
        self._stopping = False
        self._door = (
            threading.Lock()
        )  # held for the moment of a put, so that no message slips in after the end
        self._thread = threading.Thread(target=self._run, name="layby-engine", daemon=True)
        self._thread.start()

    # The door: any thread.

    def submit(self, request: Request) -> None:
        if not self._send(_Submit(request)):
            error = EngineStopped("the engine has shut down; start Layby again")
            self._bus.publish((Failed(request_id=request.request_id, error=error, partial=False),))

    def abort(self, request_id: str) -> None:
        self._send(_Abort(request_id))

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._bus.subscribe(listener)

    def control(self, command: Command) -> None:
        self._send(command)

    def snapshot(self) -> EngineSnapshot:
        return self._snapshot

    def shutdown(self) -> None:
        self._send(_Shutdown())
        self._thread.join()

    def _send(self, message: _Message) -> bool:
        with self._door:
            if self._state is EngineState.STOPPED:
                return False
            self._inbox.put(message)
            return True

    # The loop: engine thread only, from here on.

    def _run(self) -> None:
        while not self._stopping:
            events = self._handle_messages()
            if self._stepper is not None and not self._stepper.is_idle:
                events += self._stepper.step()
            self._publish(events)
        self._finish_thread()

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
            if isinstance(message, _Submit)
        ]
        self._publish([*events, ModelChanged(state=EngineState.STOPPED, model=None)])

    def _take_messages(self) -> None:
        while not self._inbox.empty():
            self._pending.append(self._inbox.get())

    def _handle_messages(self) -> list[EngineEvent]:
        """Apply every message waiting; when there is nothing to compute, wait for one."""
        if self._stepper is None or self._stepper.is_idle:
            self._pending.append(self._inbox.get())
        elif self._stepper.rests and self._inbox.empty():
            self._rest(self._stepper.wake_s)
        self._take_messages()
        events: list[EngineEvent] = []
        while self._pending and not self._stopping:
            events += self._apply(self._pending.popleft())
        return events

    def _rest(self, wake_s: float | None) -> None:
        """Wait for a message, at most until `wake_s`."""
        seconds = None if wake_s is None else max(wake_s - self._clock(), 0.0)
        with contextlib.suppress(queue.Empty):
            self._pending.append(self._inbox.get(timeout=seconds))

    def _apply(self, message: _Message) -> list[EngineEvent]:
        match message:
            case _Submit(request=request):
                return self._accept(request)
            case Prepared():
                return self._admit(message)
            case _Abort(request_id=request_id):
                return self._abort(request_id)
            case LoadModel():
                return self._load(message)
            case UnloadModel():
                events = self._drop_model(
                    ModelUnavailable("the model was unloaded; load one and ask again")
                )
                self._state = EngineState.NO_MODEL
                return [*events, ModelChanged(state=self._state, model=None)]
            case _Shutdown():
                self._stopping = True
            case _:
                self._steer(message)
        return []

    def _steer(self, command: SteeringCommand) -> None:
        """Carry out a command by hand; one for nobody alive, or with a value that cannot be, changes nothing."""
        if self._model is not None:
            with contextlib.suppress(ValueError):
                self._model.scheduler.steer(command, self._clock())

    # Requests.

    def _accept(self, request: Request) -> list[EngineEvent]:
        if self._model is None:
            error = ModelUnavailable("no model is loaded; load one and ask again")
            return [Failed(request_id=request.request_id, error=error, partial=False)]
        self._arrivals += 1
        live = LiveRequest(request, self._arrivals, self._clock())
        self._live[request.request_id] = live
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
            return self._fail(live, prepared.error)
        try:
            live.generation = self._model.generation(live, prepared.token_ids)
        except EngineError as error:
            return self._fail(live, error)
        self._stepper.add(live)
        return []

    def _abort(self, request_id: str) -> list[EngineEvent]:
        live = self._live.pop(request_id, None)
        if live is None:
            return []
        now_s = self._clock()
        if live.generation is not None and self._model is not None:
            self._model.scheduler.abort(request_id, now_s)
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
            self._model = LoadedModel.load(command, self._on_load_progress)
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
            if isinstance(message, _Abort) and (submit := self._pending_submit(message.request_id)):
                self._pending.remove(submit)
                now_s = self._clock()
                usage = LiveRequest(submit.request, 0, now_s).usage(now_s)
                events.append(
                    Finished(
                        request_id=message.request_id, reason=FinishReason.ABORTED, usage=usage
                    )
                )
        self._publish(events)
        if any(isinstance(one, UnloadModel | LoadModel | _Shutdown) for one in self._pending):
            raise _LoadCancelled

    def _pending_submit(self, request_id: str) -> _Submit | None:
        """The request of that id, if it waits for the model to be loaded."""
        for message in self._pending:
            if isinstance(message, _Submit) and message.request.request_id == request_id:
                return message
        return None

    def _drop_model(self, error: EngineError) -> list[EngineEvent]:
        """Free the model; whoever it served is told `error`."""
        events = [event for live in tuple(self._live.values()) for event in self._fail(live, error)]
        if self._model is not None:
            self._model.close()
        self._model = self._stepper = None
        return events

    def _publish(self, events: list[EngineEvent]) -> None:
        self._snapshot = self._make_snapshot()
        self._bus.publish(tuple(events))

    def _make_snapshot(self) -> EngineSnapshot:
        model = self._model
        if model is None:
            return EngineSnapshot(state=self._state)
        scheduler, usage = model.scheduler, model.scheduler.pool.usage()
        return EngineSnapshot(
            state=self._state,
            model=model.info,
            options=model.command.options,
            window_tokens=model.runner.window_tokens,
            inexact_ops=model.runner.inexact_ops,
            pool=PoolUsage(
                total_pages=usage.total_pages,
                free_pages=usage.free_pages,
                reusable_pages=usage.reusable_pages,
                page_tokens=scheduler.config.page_tokens,
                page_bytes=model.runner.page_bytes,
            ),
            waiting=scheduler.num_waiting,
            running=scheduler.num_running,
            parked=scheduler.num_parked,
            tokens_per_s=self._rate.rate(self._clock()),
        )
