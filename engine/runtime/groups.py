"""Requests that are asked together enter the line together, or not at all. Engine thread; no tensor library.

A group gathers until all its members have come and every prompt has been read; one bad prompt ends all of them before
any is in line. Members with one prompt become siblings, who share its pages. Members may be given up at any time, and
their client may then never submit the rest: of what nobody is left of, only the latest few are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from engine.api import Request, RequestGroup
from engine.core.types import Family, Sequence
from engine.errors import EngineError
from engine.runtime.live_request import LiveRequest

MOST_DESERTED = 16
"""Groups that are remembered without a member being there; members come one right after another."""


@dataclass(slots=True)
class _Gathering:
    num_to_come: int
    members: list[LiveRequest] = field(default_factory=list)
    error: EngineError | None = None
    """Why those still to come are refused."""


class Groups:
    """The groups that are still gathering. A request without a group is one of its own."""

    def __init__(self) -> None:
        self._gathering: dict[str, _Gathering] = {}

    def join(self, live: LiveRequest) -> EngineError | None:
        """A member has come; why it is refused, if an earlier one was."""
        group = live.request.group
        if group is None:
            return None
        gathering = self._expected(group)
        if gathering.error is None:
            gathering.members.append(live)
        self._tidy()
        return gathering.error

    def miss(self, request: Request) -> None:
        """A member was given up before it came: the others do not wait for it."""
        if request.group is not None:
            self._expected(request.group)
            self._tidy()

    def ready(self, live: LiveRequest) -> tuple[LiveRequest, ...]:
        """Those who may enter now that the prompt of `live` is read, as siblings where they have one prompt."""
        group = live.request.group
        if group is None:
            return (live,)
        return self._enter(group)

    def leave(self, live: LiveRequest) -> tuple[LiveRequest, ...]:
        """A member was aborted; those who waited for nobody else may enter now."""
        group = live.request.group
        if group is None or group.group_id not in self._gathering:
            return ()
        gathering = self._gathering[group.group_id]
        gathering.members = [member for member in gathering.members if member is not live]
        ready = self._enter(group)
        self._tidy()
        return ready

    def refuse(self, live: LiveRequest, error: EngineError) -> tuple[LiveRequest, ...]:
        """A member cannot be served: nobody of its group is. Those who came so far, `live` among them."""
        group = live.request.group
        if group is None:
            return (live,)
        gathering = self._gathering[group.group_id]
        refused, gathering.members = tuple(gathering.members), []
        gathering.error = error
        self._tidy()
        return refused

    def end_all(self, error: EngineError) -> None:
        """The model is gone, and everybody with it; members still to come are refused too."""
        for gathering in self._gathering.values():
            gathering.members, gathering.error = [], error
        self._tidy()

    def _expected(self, group: RequestGroup) -> _Gathering:
        """The gathering of a group of which one less is to come now."""
        gathering = self._gathering.setdefault(group.group_id, _Gathering(group.size))
        gathering.num_to_come -= 1
        return gathering

    def _enter(self, group: RequestGroup) -> tuple[LiveRequest, ...]:
        gathering = self._gathering[group.group_id]
        members = tuple(gathering.members)
        if gathering.num_to_come or any(member.generation is None for member in members):
            return ()
        del self._gathering[group.group_id]
        _unite(members)
        return members

    def _tidy(self) -> None:
        """Forget groups of which nobody is there: all if nobody is to come, else the oldest."""
        deserted = [key for key, one in self._gathering.items() if not one.members]
        over = [key for key in deserted if not self._gathering[key].num_to_come]
        for key in {*over, *deserted[:-MOST_DESERTED]}:
            del self._gathering[key]


def _unite(members: Seq[LiveRequest]) -> None:
    """Make siblings of those with the same prompt; whose prompt is read for itself has all of it computed alone."""
    alike: dict[tuple[int, ...], list[Sequence]] = {}
    for member in members:
        if member.generation is not None and member.generation.reader is None:
            seq = member.generation.seq
            alike.setdefault(tuple(seq.token_ids), []).append(seq)
    for siblings in alike.values():
        if len(siblings) > 1:
            Family.unite(siblings)
