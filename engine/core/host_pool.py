"""Host buffers that parked states are copied to, as numbers: capacities under one budget. Holds no memory itself.

A *busy* buffer holds a parked state or is being copied from or to; an *idle* one is kept for its
owner's next park, since pinning memory takes far longer than copying to it, and is given up when
the budget is needed. Owned by the CopyKeeper (engine thread).
"""

from __future__ import annotations

ROUNDING_BYTES = 64 * 1024
"""Capacities are multiples of this."""

NO_LIMIT = -1


class HostPool:
    """Counts capacity, never live size: that is what the host has really given away."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        """-1: no limit."""
        self._capacities: dict[int, int] = {}
        self._idle: set[int] = set()
        self._dropped: list[int] = []
        self._last_id = 0

    @property
    def used_bytes(self) -> int:
        """Capacity of all buffers, idle ones included."""
        return sum(self._capacities.values())

    @property
    def is_over_budget(self) -> bool:
        """Whether busy buffers alone hold more than the budget; it can only have been lowered."""
        busy = sum(size for key, size in self._capacities.items() if key not in self._idle)
        return not self._is_within(busy)

    def capacity(self, buffer_id: int) -> int:
        """Bytes of a buffer that exists."""
        return self._capacities[buffer_id]

    def __contains__(self, buffer_id: int) -> bool:
        """Whether the buffer exists: neither released nor given up."""
        return buffer_id in self._capacities

    def is_idle(self, buffer_id: int) -> bool:
        return buffer_id in self._idle

    def can_hold(self, num_bytes: int, buffer_id: int | None = None) -> bool:
        """Whether `reserve` would succeed: idle buffers can be given up, `buffer_id` be used again or grown."""
        busy = sum(
            size
            for key, size in self._capacities.items()
            if key not in self._idle and key != buffer_id
        )
        return self._is_within(busy + max(_rounded(num_bytes), self._have(buffer_id)))

    def reserve(self, num_bytes: int, buffer_id: int | None = None) -> int | None:
        """A busy buffer of at least `num_bytes`: the idle one named, grown where needed, or a new one.

        It grows to one and a half times the need where the budget would still hold a second state
        of that grown size beside it, and otherwise to the need, both rounded up: growing by the
        exact size would pin new memory at every park, and always taking the slack would fill a
        small budget with air. Idle buffers of others are given up, the largest first, until it
        fits. None, and nothing changed, where that is not enough.
        """
        if not self.can_hold(num_bytes, buffer_id):
            return None
        have = self._have(buffer_id)
        if buffer_id is None or not have:
            self._last_id += 1
            buffer_id = self._last_id
        wanted = max(_rounded(num_bytes), have)
        if wanted > have:
            grown = _rounded(num_bytes + num_bytes // 2)
            if self._is_within(self.used_bytes - have + 2 * grown):
                wanted = grown
        self._capacities[buffer_id] = wanted
        self._idle.discard(buffer_id)
        self._give_up_idle()
        return buffer_id

    def set_idle(self, buffer_id: int) -> None:
        """What the buffer held is back in the pool; it is kept as long as the budget allows.

        Does nothing if it has been given up already.
        """
        if buffer_id in self._capacities:
            self._idle.add(buffer_id)
            self._give_up_idle()

    def release(self, buffer_id: int) -> None:
        """Nobody needs the buffer any more. Does nothing if it has been given up already."""
        if self._capacities.pop(buffer_id, None) is not None:
            self._idle.discard(buffer_id)
            self._dropped.append(buffer_id)

    def set_budget(self, budget_bytes: int) -> None:
        """Change the budget; idle buffers above it are given up at once, busy ones are the keeper's to empty."""
        self.budget_bytes = budget_bytes
        self._give_up_idle()

    @property
    def has_dropped(self) -> bool:
        """Whether `take_dropped` would return anything."""
        return bool(self._dropped)

    def take_dropped(self) -> tuple[int, ...]:
        """Buffers whose memory is to be given back, each named once."""
        dropped, self._dropped = tuple(self._dropped), []
        return dropped

    def check(self) -> None:
        """Raises AssertionError where capacities break their rules."""
        assert self._idle <= set(self._capacities), f"idle {self._idle}, {self._capacities}"
        odd = {key: size for key, size in self._capacities.items() if size % ROUNDING_BYTES}
        assert not odd, f"not rounded: {odd}"
        assert self._is_within(self.used_bytes) or self.is_over_budget, (
            f"{self.used_bytes} bytes of {self.budget_bytes}, of which idle {self._idle}"
        )

    def _have(self, buffer_id: int | None) -> int:
        return 0 if buffer_id is None else self._capacities.get(buffer_id, 0)

    def _is_within(self, num_bytes: int) -> bool:
        return self.budget_bytes == NO_LIMIT or num_bytes <= self.budget_bytes

    def _give_up_idle(self) -> None:
        while self._idle and not self._is_within(self.used_bytes):
            self.release(max(self._idle, key=lambda key: (self._capacities[key], -key)))


def _rounded(num_bytes: int) -> int:
    return -(-num_bytes // ROUNDING_BYTES) * ROUNDING_BYTES
