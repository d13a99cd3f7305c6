"""What the tools of several servers are called towards the model: each once, in letters that templates take. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from studio.models.tool_servers import ToolFacts

_MOST_CHARS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool under the name that the model knows."""

    name: str
    server: str
    facts: ToolFacts


def offered(tools: Mapping[str, tuple[ToolFacts, ...]]) -> tuple[Offered, ...]:
    """All tools of these servers. One whose name another has too is called by its server and its name."""
    found: list[Offered] = []
    plain = [_plain(one.name) for listed in tools.values() for one in listed]
    taken: set[str] = set()
    for server, listed in tools.items():
        for facts in listed:
            name = _plain(facts.name)
            if plain.count(name) > 1:
                name = _plain(f"{server}_{facts.name}")
            name = _free(name, taken)
            taken.add(name)
            found.append(Offered(name=name, server=server, facts=facts))
    return tuple(found)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_MOST_CHARS] or "tool"


def _free(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name[: _MOST_CHARS - 4]}_{number}", number + 1
    return free
