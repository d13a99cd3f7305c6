"""Why a server of tools could not be used, in our words; what the server itself says stays as it is. Pure; any thread.

A catalogue of sentences knows each of these, in whatever sentence it stands.
"""

from __future__ import annotations

from engine.system_faults import system_fault
from studio.services.network_faults import is_of_network, network_fault


def told(server: str, reason: str, said: str) -> str:
    """Which server, what is wrong, and what its program has said last on its standard error."""
    if said:
        return f"{server}: {reason}; it said: {said}"
    return f"{server}: {reason}"


def link_fault(error: BaseException) -> str:
    """The first real cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError():
            return f"the program {error.filename!r} was not found; check its command and folder"
        case PermissionError():
            return f"the program {error.filename!r} may not be started; check its permissions"
        case Exception() if is_of_network(error):
            return network_fault(error)
        case OSError():
            return system_fault(error)
    return str(error) or "the connection ended"


def no_answer(timeout_s: float) -> str:
    """It took too long."""
    return f"no answer within {timeout_s:g} s"
