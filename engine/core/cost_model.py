"""Bytes and seconds of a step, a park, a restore and a recompute, from figures measured on a machine. Pure.

The figures come as data, from `layby bench --calibrate`; the simulator's clock is built on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
