"""What went wrong on the way to another machine, in our words and not in the library's English. Pure; any thread.

A catalogue of sentences knows each of these, in whatever sentence it stands.
"""

from __future__ import annotations

from engine.system_faults import system_fault


def is_of_network(error: BaseException) -> bool:
    """Whether an HTTP client raised it: httpx, or one of those that others have of their own."""
    return "HTTPError" in _kinds(error)


def network_fault(error: Exception) -> str:
    """What happened; an answer that was a refusal by its number."""
    kinds = _kinds(error)
    match error:
        case _ if "HTTPStatusError" in kinds:
            return f"it answered with status {error.response.status_code}"  # type: ignore[attr-defined]
        case _ if "TimeoutException" in kinds:
            return "nothing came for a while"
        case _ if "ConnectError" in kinds:
            return "it cannot be reached"
        case _ if "HTTPError" in kinds:
            return "the connection was lost"
        case OSError():
            return system_fault(error)
    return "what came is not what was asked for"


def _kinds(error: BaseException) -> set[str]:
    """By name: httpx is not imported for it."""
    return {kind.__name__ for kind in type(error).__mro__}
