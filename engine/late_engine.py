"""An engine that is there at once; the real one is made when `make` is called, on whichever thread.

So a window can be shown before all that an engine consists of has been read from the disk. What is asked meanwhile is
handed on in its order. Standard library only; any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from engine.api import (
    Command,
    EnginePort,
    EngineSnapshot,
    Listener,
    Prompt,
    Request,
    TextAnswer,
    TextQuestion,
    Unsubscribe,
)
from engine.errors import ModelUnavailable


class LateEngine:
    """An `EnginePort`. Until the real one is there it has no model, and answers nothing."""

    def __init__(self, create: Callable[[], EnginePort]) -> None:
        self._create = create
        self._engine: EnginePort | None = None
        self._waiting: list[Callable[[EnginePort], object]] = []
        self._is_over = False
        self._making = threading.Lock()
        self._handing_on = threading.Lock()
        """Held while what has waited is handed on, so that nothing passes it."""

    def make(self) -> None:
        """Create the real one and hand on what has waited; returns when that is done. Nothing after `shutdown`."""
        with self._making:
            if self._engine is not None or self._is_over:
                return
            engine = self._create()
            with self._handing_on:
                for call in self._waiting:
                    call(engine)
                self._waiting.clear()
                self._engine = engine

    def submit(self, request: Request) -> None:
        self._hand_on(lambda engine: engine.submit(request))

    def abort(self, request_id: str) -> None:
        self._hand_on(lambda engine: engine.abort(request_id))

    def control(self, command: Command) -> None:
        self._hand_on(lambda engine: engine.control(command))

    def subscribe(self, listener: Listener) -> Unsubscribe:
        ends: list[Unsubscribe] = []
        self._hand_on(lambda engine: ends.append(engine.subscribe(listener)))
        return lambda: self._hand_on(lambda _engine: ends[0]())

    def snapshot(self) -> EngineSnapshot:
        engine = self._engine
        return EngineSnapshot() if engine is None else engine.snapshot()

    def count_tokens(self, prompt: Prompt) -> int | None:
        engine = self._engine
        return None if engine is None else engine.count_tokens(prompt)

    def read_text(self, question: TextQuestion) -> Future[TextAnswer]:
        if (engine := self._engine) is not None:
            return engine.read_text(question)
        answer: Future[TextAnswer] = Future()
        answer.set_exception(ModelUnavailable("no model is loaded; load one and ask again"))
        return answer

    def shutdown(self) -> None:
        """Waits for one that is being made."""
        with self._making:
            self._is_over = True
            if self._engine is not None:
                self._engine.shutdown()

    def _hand_on(self, call: Callable[[EnginePort], object]) -> None:
        with self._handing_on:
            if self._engine is None:
                self._waiting.append(call)
                return
        call(self._engine)
