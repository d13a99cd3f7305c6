"""What the local HTTP server is told before it starts, and the error it fails to start with.

Plain state, any thread, no web framework.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field


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

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port is {self.port}, allowed is 0 (a free one) to 65535")

    @property
    def is_loopback(self) -> bool:
        return is_loopback_host(self.host)


def is_loopback_host(host: str) -> bool:
    """Whether `host` (no port, no brackets) can only be reached from this machine: localhost, 127.0.0.0/8 or ::1."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
