"""What is wrong with a server of tools, in words that are given to `tr` later. Pure functions, any thread; no Qt."""

from __future__ import annotations


def told(server: str, reason: str, said: str) -> str:
    """Which server, what is wrong, and what its program has said last on its standard error."""
    if said:
        return f"{server}: {reason}; it said: {said}"
    return f"{server}: {reason}"


def no_answer(waited_s: float) -> str:
    """It was started, or asked, and did not answer."""
    return f"no answer within {waited_s:g} s"


def reason_of(error: BaseException) -> str:
    """The first real cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"the program {error.filename!r} was not found; check its command and folder"
    if isinstance(error, PermissionError):
        return f"the program {error.filename!r} may not be started; check its permissions"
    if isinstance(error, OSError):
        return str(error)
    if text := str(error):
        return f"{text} ({type(error).__name__})"
    return f"the connection ended ({type(error).__name__})"
