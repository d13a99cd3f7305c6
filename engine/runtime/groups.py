"""Requests that are asked together enter the line together, or not at all. Engine thread; no tensor library.

A group gathers until all its members have come and every prompt has been read; one bad prompt ends all of them before
any is in line. Members with one prompt become siblings, who share its pages.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from engine.api import RequestGroup
from engine.core.types import Family, Sequence
from engine.errors import EngineError
from engine.runtime.live_request import LiveRequest


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
        gathering = self._gathering.setdefault(group.group_id, _Gathering(group.size))
        gathering.num_to_come -= 1
        if gathering.error is None:
            gathering.members.append(live)
        self._forget_if_over(group)
        return gathering.error

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
        return self._enter(group)

    def refuse(self, live: LiveRequest, error: EngineError) -> tuple[LiveRequest, ...]:
        """A member cannot be served: nobody of its group is. Those who came so far, `live` among them."""
        group = live.request.group
        if group is None:
            return (live,)
        gathering = self._gathering[group.group_id]
        refused, gathering.members = tuple(gathering.members), []
        gathering.error = error
        self._forget_if_over(group)
        return refused

    def clear(self) -> None:
        """The model is gone, and everybody with it."""
        self._gathering.clear()

    def _enter(self, group: RequestGroup) -> tuple[LiveRequest, ...]:
        gathering = self._gathering[group.group_id]
        members = tuple(gathering.members)
        if gathering.num_to_come or any(member.generation is None for member in members):
            return ()
        del self._gathering[group.group_id]
        _unite(members)
        return members

    def _forget_if_over(self, group: RequestGroup) -> None:
        gathering = self._gathering[group.group_id]
        if gathering.error is not None and not gathering.num_to_come:
            del self._gathering[group.group_id]


def _unite(members: Seq[LiveRequest]) -> None:
    """Make siblings of those with the same prompt."""
    alike: dict[tuple[int, ...], list[Sequence]] = {}
    for member in members:
        if member.generation is not None:
            seq = member.generation.seq
            alike.setdefault(tuple(seq.token_ids), []).append(seq)
    for siblings in alike.values():
        if len(siblings) > 1:
            Family.unite(siblings)
