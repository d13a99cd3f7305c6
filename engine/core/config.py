"""Limits the scheduler works under; validated once. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.victim_policies import VICTIM_POLICIES

PAGE_TOKENS = 32
"""Token positions in a page. Attention walks pieces of 256 tokens, a multiple of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """Raises ValueError, naming field, value and limit, when a bound is broken."""

    num_pages: int
    """Pages in the pool; at least 1."""
    page_tokens: int = PAGE_TOKENS
    max_running: int = 4
    """Seats (`--parallel`); at least 1."""
    step_tokens: int = 256
    """Token budget of a step; at least 1."""
    window_tokens: int = 0
    """Most tokens one sequence may hold: the smaller of the model's window and the pool. 0: the pool."""
    victim_policy: str = "fcfs"
    """Who leaves when pages are short: a name registered in engine.core.victim_policies."""

    def __post_init__(self) -> None:
        for name in ("num_pages", "page_tokens", "max_running", "step_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is 1")
        if not 0 <= self.window_tokens <= self.pool_tokens:
            raise ValueError(
                f"window_tokens is {self.window_tokens}, allowed is 0 to the pool's {self.pool_tokens}"
            )

        if self.victim_policy not in VICTIM_POLICIES:
            known = ", ".join(sorted(VICTIM_POLICIES))
            raise ValueError(f"victim_policy is {self.victim_policy!r}, allowed is {known}")

    @property
    def pool_tokens(self) -> int:
        return self.num_pages * self.page_tokens

    @property
    def sequence_tokens(self) -> int:
        """Most tokens one sequence may hold, as a number."""
        return self.window_tokens or self.pool_tokens

    @property
    def seats(self) -> int:
        """Most sequences that run at once: each must be able to get a token in every step."""
        return min(self.max_running, self.step_tokens)
