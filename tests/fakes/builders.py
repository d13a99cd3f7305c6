"""Short ways to the objects that tests need most: every argument has a default, and what matters is named."""

from __future__ import annotations

from collections.abc import Iterable

from engine.api import Origin, Priority, Request, SamplingParams, TokenIds
from engine.core.config import ROTATE_AFTER_S, Knobs, ParkConfig, ParkMemory, SchedulerConfig
from engine.core.host_pool import ROUNDING_BYTES
from engine.core.scheduler import Scheduler
from engine.core.types import Family, Sequence


def make_scheduler(
    pages: int = 8,
    *,
    page_tokens: int = 4,
    max_running: int = 4,
    step_tokens: int = 64,
    window_tokens: int = 0,
    policy: str = "fcfs",
    park: ParkConfig | None = None,
    knobs: Knobs | None = None,
) -> Scheduler:
    """A scheduler over a small pool; by default its parks keep nothing."""
    return Scheduler(
        SchedulerConfig(
            num_pages=pages,
            page_tokens=page_tokens,
            max_running=max_running,
            step_tokens=step_tokens,
            window_tokens=window_tokens,
            victim_policy=policy,
            park=park if park is not None else ParkConfig(),
            knobs=knobs if knobs is not None else Knobs(),
        )
    )


def in_place(budget_pages: int = 64, *, rotate_after_s: float = ROTATE_AFTER_S) -> ParkConfig:
    """Parks that move no bytes; a page is one byte, so the budget is pages."""
    return ParkConfig(
        memory=ParkMemory.IN_PLACE,
        budget_bytes=budget_pages,
        rotate_after_s=rotate_after_s,
    )


def copied(
    budget_pages: int = 64, *, is_async: bool = False, rotate_after_s: float = ROTATE_AFTER_S
) -> ParkConfig:
    """Parks that copy to host buffers, whose sizes are whole pages."""
    return ParkConfig(
        memory=ParkMemory.COPIED,
        budget_bytes=budget_pages * ROUNDING_BYTES,
        page_bytes=ROUNDING_BYTES,
        is_async=is_async,
        rotate_after_s=rotate_after_s,
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
    keep_tokens: int | None = None,
    max_wait_s: float | None = None,
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
        keep_tokens=keep_tokens,
        max_wait_s=max_wait_s,
    )


def make_family(
    size: int, prompt: int = 5, *, arrival: int = 0, max_new: int = 8
) -> tuple[Sequence, ...]:
    """Siblings with one prompt."""
    tokens = list(_tokens(prompt, arrival))
    members = [
        make_sequence(tokens, arrival=arrival + index, max_new=max_new) for index in range(size)
    ]
    return Family.unite(members).members


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
