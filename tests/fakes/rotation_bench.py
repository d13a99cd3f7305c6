"""A bench in which residents give way, and sequences that never end."""

from __future__ import annotations

from engine.api import Priority
from engine.core.config import ParkConfig
from engine.core.types import Sequence
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.stepping import Bench


def bench_of(
    pages: int = 14,
    *,
    park: ParkConfig | None = None,
    step_s: float = 0.1,
    policy: str = "fcfs",
) -> Bench:
    """A pool of pages of four tokens that fits two chats of some length, and steps of a tenth of a second."""
    park = in_place() if park is None else park
    return Bench(make_scheduler(pages, page_tokens=4, park=park, policy=policy), step_s=step_s)


def endless(arrival: int, prompt: int = 8, *, priority: Priority = Priority.NORMAL) -> Sequence:
    """A chat whose length nobody knows; it shifts its context for ever."""
    return make_sequence(prompt, arrival=arrival, max_new=10**6, keep_tokens=2, priority=priority)
