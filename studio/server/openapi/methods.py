"""Which methods a path takes: the router itself knows only those of the first route that fits. Pure; any thread."""

from __future__ import annotations

from functools import cache
from re import Pattern

from starlette.routing import compile_path

from studio.server.openapi.entries import OPERATIONS


def methods_of(path: str) -> tuple[str, ...]:
    """In alphabetical order; none for a path that nobody serves. A path that is in the table goes before patterns."""
    own = {method for method, each in OPERATIONS if each == path}
    fitting = own or {method for method, pattern in _patterns() if pattern.match(path)}
    return tuple(sorted(fitting))


@cache
def _patterns() -> tuple[tuple[str, Pattern[str]], ...]:
    return tuple((method, compile_path(path)[0]) for method, path in OPERATIONS)
