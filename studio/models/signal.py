"""A small observer: connect functions, emit values. Same thread only; no Qt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Calls every connected function, in the order they connected.

    A slot may disconnect itself while it is called.
    """

    def __init__(self) -> None:
        self._slots: list[Callable[P, object]] = []

    def connect(self, slot: Callable[P, object]) -> Callable[[], None]:
        """Call `slot` on every emit; the returned function ends that and may be called twice."""
        self._slots.append(slot)

        def disconnect() -> None:
            if slot in self._slots:
                self._slots.remove(slot)

        return disconnect

    def emit(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for slot in tuple(self._slots):
            slot(*args, **kwargs)
