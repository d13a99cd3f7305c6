"""May the head of the line enter the pool now? Pure decisions with a reason that a person can read.

Called by the Scheduler for the head only: nobody passes it. A newcomer and a parked sequence obey
the same rules. The cheap question (a seat and tokens) is asked before the dear one (pages, which
needs a look into the prefix index).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer and why."""

    admitted: bool
    reason: str


def may_sit(num_running: int, *, seats: int, tokens_left: int) -> Admission:
    """Whether there is a seat, and work for it in this step.

    Without tokens left it would only hold pages; and the longer it waits, the more of a prefix it
    shares with those before it has been computed when it looks for it.
    """
    if num_running >= seats:
        return Admission(False, f"all {seats} seats are taken")
    if tokens_left <= 0:
        return Admission(False, "those before it use all tokens of this step")
    return Admission(True, f"{num_running} of {seats} seats are taken")


def may_hold(need_pages: int, *, spare_pages: int, num_running: int) -> Admission:
    """Whether its pages fit beside what the running sequences hold and are still to fill.

    `need_pages` are what it takes out of the usable pages; `spare_pages` are the usable ones less
    what running sequences need for the tokens they have. One more page for each running sequence
    must be left: without this margin the next page that any of them fills would send the entrant
    out again. With nothing running it always enters: it fits an empty pool.
    """
    if num_running == 0:
        return Admission(True, "nothing else runs")
    wanted = need_pages + num_running
    told = f"it needs {need_pages} pages and a margin of {num_running}, {spare_pages} are spare"
    return Admission(wanted <= spare_pages, told)
