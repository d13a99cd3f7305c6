"""Short ways to the objects that tests need most: every argument has a default, and what matters is named."""

from __future__ import annotations

from collections.abc import Iterable

from engine.api import Origin, Priority, Request, SamplingParams, TokenIds
from engine.core.config import SchedulerConfig
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence


def make_scheduler(
    pages: int = 8,
    *,
    page_tokens: int = 4,
    max_running: int = 4,
    step_tokens: int = 64,
    window_tokens: int = 0,
) -> Scheduler:
    """A scheduler over a small pool."""
    return Scheduler(
        SchedulerConfig(
            num_pages=pages,
            page_tokens=page_tokens,
            max_running=max_running,
            step_tokens=step_tokens,
            window_tokens=window_tokens,
        )
    )


def make_sequence(
    prompt: int | Iterable[int] = 5,
    *,
    arrival: int = 0,
    request_id: str | None = None,
    max_new: int = 8,
    eos: Iterable[int] = (),
    priority: Priority = Priority.NORMAL,
    arrival_s: float = 0.0,
) -> Sequence:
    """A waiting sequence. A prompt given as a number has that many tokens, no two arrivals sharing any."""
    token_ids = list(_tokens(prompt, arrival))
    return Sequence(
        request_id=request_id if request_id is not None else f"r{arrival}",
        token_ids=token_ids,
        num_prompt=len(token_ids),
        max_new_tokens=max_new,
        eos_ids=frozenset(eos),
        priority=priority,
        arrival=arrival,
        arrival_s=arrival_s,
    )


def make_request(
    prompt: int | Iterable[int] = 5,
    *,
    request_id: str = "r0",
    max_tokens: int | None = 8,
    sampling: SamplingParams | None = None,
    origin: Origin = Origin.API,
) -> Request:
    """A greedy request for tokens given as they are; a number makes that many."""
    return Request(
        request_id=request_id,
        origin=origin,
        prompt=TokenIds(ids=tuple(_tokens(prompt, 0))),
        sampling=sampling if sampling is not None else SamplingParams(temperature=0),
        max_tokens=max_tokens,
    )


def _tokens(prompt: int | Iterable[int], arrival: int) -> Iterable[int]:
    return range(1000 * arrival, 1000 * arrival + prompt) if isinstance(prompt, int) else prompt
