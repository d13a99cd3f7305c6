"""What the local HTTP server is told before it starts, and the error it fails to start with.

Plain state, any thread, no web framework.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where the server listens and who may ask. Raises ValueError when the port is out of bounds."""

    host: str = "127.0.0.1"
    """Name or address to listen on. Anything but this machine's loopback needs `api_key`."""
    port: int = 8484
    """0 takes a free one."""
    api_key: str | None = field(default=None, repr=False)
    """What every request must carry, except GET /health; None or empty: no key is asked for."""
    sse_ping_interval_s: int = 30
    """Seconds of silence after which a stream is sent an empty comment; 0 and below: none."""
    lets_local_in: bool = False
    """Where only this machine can reach the server: ask for no key although there are some."""
    cors_origins: tuple[str, ...] = ()
    """Pages beside those of this machine that may use the server, like https://app.example; "*" is all."""
    keeps_prompts: bool = False
    """Whether the rows of requests have their prompts."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port is {self.port}, allowed is 0 (a free one) to 65535")
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r:.80} is no origin; give scheme and name, as in https://app.example, or *"
                )

    @property
    def is_loopback(self) -> bool:
        return is_loopback_host(self.host)


def read_origins(text: str) -> tuple[str, ...]:
    """Origins apart by commas or spaces, without a slash at their end."""
    return tuple(part.rstrip("/").lower() for part in text.replace(",", " ").split())


def is_loopback_host(host: str) -> bool:
    """Whether `host` (no port, no brackets) can only be reached from this machine: localhost, 127.0.0.0/8 or ::1."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
