"""Which host buffers belong to whom. Owned by the CopyKeeper (engine thread).

An owner has one buffer for each copy out of the pool that it has not come back from: mostly one.
When it is back one stays with it, idle, for its next park.
"""

from __future__ import annotations

from engine.core.host_pool import HostPool
from engine.core.types import Family, Sequence

Owner = Sequence | Family


class OwnedBuffers:
    """Buffers of the host pool by owner, the oldest first."""

    def __init__(self, host: HostPool, page_bytes: int) -> None:
        self._host = host
        self._page_bytes = page_bytes
        self._of: dict[Owner, list[int]] = {}

    def can_hold(self, owner: Owner, num_pages: int) -> bool:
        """Whether `reserve` would succeed."""
        return self._host.can_hold(num_pages * self._page_bytes, self._idle(owner))

    def reserve(self, owner: Owner, num_pages: int) -> int | None:
        """A buffer for a copy: the one kept idle, if it has not been given up for others, or a new one."""
        idle = self._idle(owner)
        buffer_id = self._host.reserve(num_pages * self._page_bytes, idle)
        if buffer_id is not None and buffer_id != idle:
            kept = [one for one in self._of.get(owner, ()) if one in self._host]
            self._of[owner] = [*kept, buffer_id]
        return buffer_id

    def keep_one(self, owner: Owner) -> None:
        """The owner is back in the pool: one buffer stays with it, idle."""
        for buffer_id in self._of.get(owner, [])[1:]:
            self.release(owner, buffer_id)
        for buffer_id in self._of.get(owner, []):
            self._host.set_idle(buffer_id)

    def release(self, owner: Owner, buffer_id: int) -> None:
        """Give a buffer up, and with its last one forget the owner."""
        self._host.release(buffer_id)
        self._of[owner].remove(buffer_id)
        if not self._of[owner]:
            del self._of[owner]

    def hand_over(self, old: Owner, new: Owner) -> None:
        """All that one owner has is another's from now on, who has none yet."""
        if old in self._of:
            self._of[new] = self._of.pop(old)

    def release_all(self, owner: Owner) -> None:
        """The owner needs none any more."""
        for buffer_id in self._of.pop(owner, ()):
            self._host.release(buffer_id)

    def check(self) -> None:
        """Raises AssertionError if a buffer has two owners."""
        known = [buffer_id for buffers in self._of.values() for buffer_id in buffers]
        assert len(known) == len(set(known)), f"buffers with two owners: {self._of}"

    def _idle(self, owner: Owner) -> int | None:
        return next(filter(self._host.is_idle, self._of.get(owner, ())), None)
