"""Which methods a path takes: the router itself knows only those of the first route that fits. Pure; any thread."""

from __future__ import annotations

from functools import cache
from re import Pattern

from starlette.routing import compile_path

from studio.server.openapi.entries import OPERATIONS


def methods_of(path: str) -> tuple[str, ...]:
    """In alphabetical order; none for a path that nobody serves."""
    return tuple(sorted({method for method, pattern in _patterns() if pattern.match(path)}))


@cache
def _patterns() -> tuple[tuple[str, Pattern[str]], ...]:
    return tuple((method, compile_path(path)[0]) for method, path in OPERATIONS)
