"""Who comes when and wants what: seeded arrival traces for the simulator, and their file format.

Pure apart from the dice, which are seeded. A trace file is JSON; see `write_trace`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from random import Random

PROMPT_TOKENS = 1000
"""Prompts have about so many tokens."""

FORMAT = "layby-trace-1"


class Shape(Enum):
    """How long the replies of a trace are."""

    UNIFORM = "uniform"
    """Anything between short and long."""
    MEASURED = "measured"
    """Like real chats with a reasoning model: mostly long, some several times as long as others."""
    HEAVY = "heavy"
    """Mostly short, a few as long as the pool allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One chat. How long its reply becomes is not known to the scheduler, unless the chat limits it."""

    at_s: float
    prompt_tokens: int
    reply_tokens: int
    is_limited: bool = False
    """Whether the reply ends at its limit, which the scheduler knows, and not by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Some chats, in order of arrival."""

    name: str
    arrivals: tuple[Arrival, ...]


def make_trace(shape: Shape, num_chats: int, *, window_tokens: int, seed: int) -> Trace:
    """Chats that start together; none is longer than the window. The same arguments give the same trace."""
    random = Random(f"{shape.value} {num_chats} {window_tokens} {seed}")
    most = window_tokens - 2 * PROMPT_TOKENS
    arrivals = tuple(
        Arrival(
            at_s=0.0,
            prompt_tokens=random.randint(PROMPT_TOKENS * 3 // 4, PROMPT_TOKENS * 5 // 4),
            reply_tokens=max(min(_reply_tokens(shape, random), most), 16),
        )
        for _ in range(num_chats)
    )
    return Trace(name=f"{shape.value}-{num_chats}-{seed}", arrivals=arrivals)


def write_trace(trace: Trace) -> str:
    """The trace as a JSON text that `read_trace` reads."""
    chats = [asdict(arrival) for arrival in trace.arrivals]
    return json.dumps({"format": FORMAT, "name": trace.name, "chats": chats}, indent=1) + "\n"


def read_trace(text: str) -> Trace:
    """Raises ValueError, naming what is wrong, on a text that is no trace."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the trace is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"the trace does not say that its format is {FORMAT}")
    try:
        arrivals = tuple(_read_arrival(chat) for chat in data["chats"])
        name = str(data["name"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"the trace lacks or mistakes a field: {error}") from error
    return Trace(name=name, arrivals=tuple(sorted(arrivals, key=lambda a: a.at_s)))


def _read_arrival(chat: dict[str, object]) -> Arrival:
    numbers = {}
    for name, least in (("at_s", 0), ("prompt_tokens", 1), ("reply_tokens", 0)):
        value = chat[name]
        if not isinstance(value, int | float) or not least <= value < 1e9:
            raise ValueError(f"{name} is {value!r}, allowed is a number from {least} to 1e9")
        numbers[name] = value
    return Arrival(
        at_s=float(numbers["at_s"]),
        prompt_tokens=int(numbers["prompt_tokens"]),
        reply_tokens=int(numbers["reply_tokens"]),
        is_limited=bool(chat.get("is_limited", False)),
    )


def _reply_tokens(shape: Shape, random: Random) -> int:
    match shape:
        case Shape.UNIFORM:
            return random.randint(200, 3000)
        case Shape.MEASURED:
            return round(random.lognormvariate(7.9, 0.5))
        case Shape.HEAVY:
            return round(250 * random.paretovariate(0.8))
