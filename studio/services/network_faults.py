"""What went wrong on the way to another machine, in our words and not in the library's English. Pure; any thread.

A catalogue of sentences knows each of these, in whatever sentence it stands.
"""

from __future__ import annotations

from engine.system_faults import system_fault


def network_fault(error: Exception) -> str:
    """What happened; an answer that was a refusal by its number."""
    kinds = {kind.__name__ for kind in type(error).__mro__}  # others have an httpx of their own
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
