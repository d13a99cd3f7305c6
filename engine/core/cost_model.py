"""Bytes and seconds of a step, a park, a restore and a recompute, from figures measured on a machine. Pure.

The figures come as data, from `layby bench --calibrate` or from the running engine; the simulator's
clock is built on them, and the waits that people are told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.core.config import GUARD_S, GUARD_TOKENS

_SPEED_VARIES = 1.5
"""A reply becomes up to so much faster or slower as others leave and enter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a machine and a model were measured to do. The defaults are a 135M model on two cores."""

    step_s: float = 0.002
    """Seconds of a step however little it computes."""
    decode_token_s: float = 0.0015
    """Seconds that one more sequence adds to a step."""
    prefill_token_s: float = 0.0006
    """Seconds that one more token of a prompt adds to a step."""
    context_token_s: float = 1e-6
    """Seconds that one token already held adds to each step of its sequence."""
    token_bytes: int = 23040
    """Bytes of one token's keys and values."""
    copy_out_bytes_s: float = 12e9
    copy_in_bytes_s: float = 10e9
    park_s: float = 20e-6
    """Seconds of a park or a restore that copies nothing, and of each copy beside its bytes."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be above 0")


class CostModel:
    """Prices in seconds and bytes."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration

    def state_bytes(self, tokens: int) -> int:
        """Bytes of the state of `tokens` tokens."""
        return tokens * self.calibration.token_bytes

    def step_s(self, rows: Iterable[tuple[int, int]]) -> float:
        """A step over rows given as (tokens held before, tokens computed); 0 for none."""
        c = self.calibration
        total = 0.0
        for start, count in rows:
            token_s = c.decode_token_s if count == 1 else c.prefill_token_s
            total += count * (token_s + start * c.context_token_s)
        return total + c.step_s if total else 0.0

    def park_s(self, tokens: int, *, is_copied: bool) -> float:
        """Parking `tokens` tokens: their bytes where they are copied, next to nothing where they are not."""
        if not is_copied:
            return self.calibration.park_s
        return (
            self.calibration.park_s + self.state_bytes(tokens) / self.calibration.copy_out_bytes_s
        )

    def restore_s(self, tokens: int, *, is_copied: bool) -> float:
        """Bringing `tokens` tokens back."""
        if not is_copied:
            return self.calibration.park_s
        return self.calibration.park_s + self.state_bytes(tokens) / self.calibration.copy_in_bytes_s

    def recompute_s(self, tokens: int, step_tokens: int) -> float:
        """Computing `tokens` tokens again in chunks of `step_tokens`, with nothing beside them."""
        starts = range(0, tokens, step_tokens)
        return sum(self.step_s([(start, min(step_tokens, tokens - start))]) for start in starts)


@dataclass(frozen=True, slots=True)
class Resident:
    """Somebody in the pool, as far as others wait for him."""

    pages: int
    tokens_left: int
    """Tokens until its own limit or the window ends it, at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the wait of somebody in line depends on."""

    pages_lacking: int
    """Pages that must come free before it enters, for those before it too."""
    seats_lacking: int = 0
    """Seats that must come free, likewise."""
    residents: tuple[Resident, ...] = ()
    ahead_tokens: int = 0
    """Tokens that those before it may still generate."""
    turns_s: tuple[float, ...] = ()
    """Seconds from now until those before it, and last it itself, are owed the room; empty where nobody gives way."""
    more_turns: int = 0
    """Turns between these that are not told one by one, far back in a long line."""


def expected_wait_s(outlook: Outlook, *, tokens_s: float) -> tuple[float, float]:
    """Soonest and latest entry in seconds from now, at `tokens_s` measured tokens per second of one sequence.

    Where residents give way it is a matter of turns: of those before it and its own, at the latest
    when each resident has had the time that is his after a return. Elsewhere it is a matter of the
    residents' ends, which may come at any moment and come when enough of them have reached their
    limits. For the next in line that bounds the turn too; those further back may find the room
    taken again. Raises ValueError on a speed that is not above 0.
    """
    if not tokens_s > 0:
        raise ValueError(f"tokens_s is {tokens_s}, it must be above 0")
    if outlook.pages_lacking <= 0 and outlook.seats_lacking <= 0:
        return (0.0, 0.0)
    ends_s = _tokens_until_enough_end(outlook) / tokens_s
    if not outlook.turns_s:
        return (0.0, ends_s * _SPEED_VARIES)
    guard_s = min(GUARD_S, GUARD_TOKENS / tokens_s)
    latest = 0.0
    for owed_s in outlook.turns_s:
        latest = max(latest, owed_s) + guard_s
    latest += outlook.more_turns * guard_s
    if len(outlook.turns_s) == 1:
        latest = min(latest, ends_s * _SPEED_VARIES)
    return (min(max(outlook.turns_s), ends_s / _SPEED_VARIES), latest)


def _tokens_until_enough_end(outlook: Outlook) -> int:
    """Tokens that the slowest of those generates who must end first: residents, then those before it in line."""
    pages, seats = outlook.pages_lacking, outlook.seats_lacking
    tokens = 0
    for one in sorted(outlook.residents, key=lambda one: one.tokens_left):
        if pages <= 0 and seats <= 0:
            return tokens
        pages, seats, tokens = pages - one.pages, seats - 1, one.tokens_left
    return tokens if pages <= 0 and seats <= 0 else tokens + outlook.ahead_tokens
