"""Requests of programs as rows of the list: those in flight, and for some seconds those that have just ended.

GUI thread. Must not import services or widgets.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.api import EngineSnapshot, Origin
from engine.runs import Run
from studio.views.run_sentences import Others

_STAY_LOOKS = 12
"""How many looks at the snapshot an ended request stays: a program that asks all the time would make the list dance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A program's request. `run` is as it was seen last."""

    run: Run
    name: str
    has_ended: bool = False

    @property
    def key(self) -> tuple[str, object]:
        return "run", self.run.request_id


class ProgramRuns:
    """Keeps the rows from one look to the next."""

    def __init__(self) -> None:
        self.rows: list[RunRow] = []
        """The first to arrive first."""
        self._looks_left: dict[str, int] = {}

    def look(self, snapshot: EngineSnapshot, others: Others) -> None:
        """Take what the snapshot has now."""
        alive = {run.request_id: run for run in snapshot.runs if run.origin is not Origin.GUI}
        kept = [row for row in self.rows if self._stays(row, alive)]
        known = {row.run.request_id for row in kept}
        new = [run for id_, run in alive.items() if id_ not in known]
        self.rows = [
            *(_renewed(row, alive.get(row.run.request_id), others) for row in kept),
            *(RunRow(run=run, name=others.spoken(run.request_id)) for run in new),
        ]

    def _stays(self, row: RunRow, alive: dict[str, Run]) -> bool:
        request_id = row.run.request_id
        if request_id in alive:
            self._looks_left[request_id] = _STAY_LOOKS
            return True
        self._looks_left[request_id] = self._looks_left.get(request_id, _STAY_LOOKS) - 1
        if self._looks_left[request_id] > 0:
            return True
        del self._looks_left[request_id]
        return False


def _renewed(row: RunRow, run: Run | None, others: Others) -> RunRow:
    if run is None:
        return RunRow(run=row.run, name=row.name, has_ended=True)
    return RunRow(run=run, name=others.spoken(run.request_id))
