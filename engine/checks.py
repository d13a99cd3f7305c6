"""Bounds of the messages at the engine's door, checked where a message is made. Standard library only; any thread."""

from __future__ import annotations

from engine.errors import InvalidRequest


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raises InvalidRequest, naming the field, unless low <= value <= high."""
    if not low <= value <= high:  # also false for NaN
        raise InvalidRequest(
            f"{name} is {value}, allowed is {low} to {high}; leave it out for the default",
            param=name,
        )


def check_name(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises InvalidRequest, naming the field and what is allowed, for any other name."""
    if value not in allowed:
        raise InvalidRequest(
            f"{name} is {value!r}, allowed is one of {', '.join(allowed)}", param=name
        )
