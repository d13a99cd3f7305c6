"""Who waits, runs or is parked, and in which order. Owned by the Scheduler (engine thread); decides nothing itself."""

from __future__ import annotations

from bisect import insort

from engine.core.types import SeqStatus, Sequence


class Lines:
    """One line for each status but FINISHED, ordered by (priority, arrival); every live sequence stands in one."""

    def __init__(self) -> None:
        self._by_id: dict[str, Sequence] = {}
        self._lines: dict[SeqStatus, list[Sequence]] = {
            status: [] for status in SeqStatus if status is not SeqStatus.FINISHED
        }

    def __getitem__(self, status: SeqStatus) -> list[Sequence]:
        """The line itself, head first; changed by `add` and `move` only."""
        return self._lines[status]

    @property
    def live(self) -> tuple[Sequence, ...]:
        """Every sequence that has not ended, in order of `add`."""
        return tuple(self._by_id.values())

    def find(self, request_id: str) -> Sequence | None:
        """The live sequence of that id."""
        return self._by_id.get(request_id)

    def add(self, seq: Sequence) -> None:
        """Take in a sequence. Raises ValueError if its id is alive."""
        if seq.request_id in self._by_id:
            raise ValueError(f"{seq.request_id} is already alive")
        self._by_id[seq.request_id] = seq
        self._insert(seq)

    def move(self, seq: Sequence, status: SeqStatus) -> None:
        """Change the status, and the line with it; FINISHED leaves. Raises ValueError on a move that is not legal."""
        line = self._lines[seq.status]
        seq.move_to(status)
        line.remove(seq)
        if status is SeqStatus.FINISHED:
            del self._by_id[seq.request_id]
        else:
            self._insert(seq)

    def check(self) -> None:
        """Recount. Raises AssertionError on a sequence out of order, in a wrong line or in none."""
        standing = {seq.request_id: seq for line in self._lines.values() for seq in line}
        counts = {status.value: len(line) for status, line in self._lines.items()}
        assert standing == self._by_id, f"{counts} stand in line, {len(self._by_id)} are alive"
        assert sum(counts.values()) == len(standing), f"somebody stands twice: {counts}"
        for status, line in self._lines.items():
            keys = [seq.line_key for seq in line]
            assert keys == sorted(keys), f"{status.value}: out of order: {keys}"
            strays = [seq.request_id for seq in line if seq.status is not status]
            assert not strays, f"{strays} stand among the {status.value}, which they are not"

    def _insert(self, seq: Sequence) -> None:
        insort(self._lines[seq.status], seq, key=lambda s: s.line_key)
