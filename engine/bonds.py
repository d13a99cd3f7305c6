"""How requests hang together: asked at once, or one going on where another has ended.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.checks import check_range


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """Requests that are asked together, one after another with nothing between them.

    None of them stands in line before all have been found sound; if one is not, each fails with its error. Those with
    the same prompt are siblings: they share its pages, and are parked and brought back together.
    """

    group_id: str
    size: int
    """Members it has; all of them must be submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """How long a request is kept after its end for whoever answers it: a person who allows a tool, the tool itself.

    It does not run meanwhile. Its pages stay in the pool for the grace, unless somebody who runs, or has waited long
    enough, needs them: nobody else is parked before it. Then its room is lent out, its state kept as of anybody
    parked. A request that `follows` it goes on from there. Raises InvalidRequest on a time out of bounds.
    """

    grace_s: float = 10.0
    """0 and more: seconds after which its room is lent out though nobody needs it yet."""
    longest_s: float = 3600.0
    """Seconds after which nothing is kept any more."""
    after_any_end: bool = False
    """Also where the reply ends without calling a tool; whoever has asked then says when it goes, by an abort."""

    def __post_init__(self) -> None:
        check_range("grace_s", self.grace_s, 0, 1e9)
        check_range("longest_s", self.longest_s, 0, 1e9)
