"""What the server shares with the rest of the program. Plain values; imports nothing of the web framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from studio.models.request_log import RequestLog
from studio.models.server_keys import KeyRing, NoKeys
from studio.services.model_demand import ModelDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """Given to each server that is made."""

    keys: KeyRing = field(default_factory=NoKeys)
    log: RequestLog = field(default_factory=RequestLog)
    make_demand: Callable[[], ModelDemand] | None = None
    """Called on the server's loop; None: only what is loaded is served."""
