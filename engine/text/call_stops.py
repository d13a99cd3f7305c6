"""Watches for stop strings in the arguments of calls, as they are told.

One object a request, on the engine thread. No torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.api import ToolCallDelta
from engine.text.stop_strings import StopMatcher


class CallStops:
    """Holds back what may turn out to be the beginning of a stop string until its call goes on or ends.

    Each call is looked through by itself; after a stop nothing more comes out.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._matcher = StopMatcher(stops)
        self._index = 0

    @property
    def found(self) -> str:
        """The stop string that has ended the reply."""
        return self._matcher.found

    def push(self, deltas: Iterable[ToolCallDelta], *, num_ended: int) -> tuple[ToolCallDelta, ...]:
        """More of the calls, of which so many are complete; what of it may be told."""
        if not self._stops:
            return tuple(deltas)
        shown: list[ToolCallDelta] = []
        for delta in deltas:
            if self.found:
                break
            if delta.index != self._index:
                shown += self.flush()
                self._matcher, self._index = StopMatcher(self._stops), delta.index
            told = replace(delta, arguments=self._matcher.push(delta.arguments).text)
            if told.name or told.arguments:
                shown.append(told)
        if num_ended > self._index:
            shown += self.flush()
        return tuple(shown)

    def flush(self) -> tuple[ToolCallDelta, ...]:
        """What was held back of the call that is open."""
        held = self._matcher.flush()
        return (ToolCallDelta(index=self._index, arguments=held),) if held else ()
