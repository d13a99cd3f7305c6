"""Requests that programs have sent to the local server, as rows: the newest thousand.

`RequestLog` is written on the server's thread only; `rows` is an immutable tuple that any thread may read at any
time. Prompts are in it only where the user asked for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MOST_ROWS = 1000
MOST_PROMPT_CHARS = 4000


class RequestState(Enum):
    """Where a request is. What a running one does just now (reading, parked) its run in the engine tells."""

    RUNNING = "running"
    HELD_BACK = "held_back"
    """Its key holds its share of the pool; it is let in when there is room in it."""
    DONE = "done"
    REFUSED = "refused"
    """Answered with an error, or ended by one."""
    LEFT = "left"
    """The client closed the connection before the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One HTTP request. Times are Unix seconds."""

    row_id: int
    started_s: float
    method: str
    path: str
    client: str
    """Name of the key, else what the program calls itself, else its address."""
    key: str = ""
    """Name of the key; empty where none was needed."""
    program: str = ""
    """What the program calls itself; empty where it does not."""
    state: RequestState = RequestState.RUNNING
    status: int = 0
    """Of the answer; 0 before there is one."""
    model: str = ""
    run_ids: tuple[str, ...] = ()
    """The engine's requests that it is made of."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    parked_s: float = 0.0
    ended_s: float | None = None
    prompt: str = ""
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.ended_s is not None


class RequestLog:
    """The newest MOST_ROWS rows, oldest first."""

    def __init__(self) -> None:
        self.rows: tuple[RequestRow, ...] = ()
        self._by_id: dict[int, RequestRow] = {}
        self._last_id = 0

    def new_id(self) -> int:
        """Higher than any before."""
        self._last_id += 1
        return self._last_id

    def put(self, row: RequestRow) -> None:
        """Add a row, or replace the one with its id. A row that has been pushed out stays out."""
        if row.row_id not in self._by_id and self._by_id and row.row_id < next(iter(self._by_id)):
            return
        self._by_id[row.row_id] = row
        while len(self._by_id) > MOST_ROWS:
            del self._by_id[next(iter(self._by_id))]
        self.rows = tuple(self._by_id.values())

    def clear(self) -> None:
        """Forget the rows that are over."""
        self._by_id = {key: row for key, row in self._by_id.items() if not row.is_over}
        self.rows = tuple(self._by_id.values())
