"""Keys of the local server: who a program is, how soon its requests go, and how much it may take.

Plain frozen values, any thread. A key's secret is never kept, only its digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from engine.api import Priority

MOST_REQUESTS = 1000
MOST_NAME_CHARS = 60


class Lane(Enum):
    """How soon a key's requests go, beside those of other keys and the window's chats."""

    INTERACTIVE = "interactive"
    """As a chat somebody looks at."""
    NORMAL = "normal"
    BACKGROUND = "background"
    """After everybody else."""

    @property
    def priority(self) -> Priority:
        """The engine's class for it."""
        return Priority[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKey:
    """One key. Raises ValueError, naming the field, when a value is out of bounds."""

    key_id: str
    name: str
    digest: str
    """SHA-256 of the secret, in hexadecimal. The secret is 256 random bits: no salt could add to that."""
    hint: str
    """The secret's last characters, by which its owner knows it."""
    created_s: float
    lane: Lane = Lane.NORMAL
    share_percent: int = 100
    """Of the pool, beyond which no further request of it is let in beside its others; 100: no limit."""
    max_requests: int = 0
    """Most requests at once; 0: no limit."""

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > MOST_NAME_CHARS:
            raise ValueError(
                f"the name has {len(self.name)} characters; give 1 to {MOST_NAME_CHARS}"
            )
        if not 1 <= self.share_percent <= 100:
            raise ValueError(f"the share is {self.share_percent} %; give 1 to 100")
        if not 0 <= self.max_requests <= MOST_REQUESTS:
            raise ValueError(
                f"requests at once are {self.max_requests}; give 0 (no limit) to {MOST_REQUESTS}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlan:
    """What a new key is to be."""

    name: str
    lane: Lane = Lane.NORMAL
    share_percent: int = 100
    max_requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who a request comes from, once that is known."""

    key_id: str = ""
    """Empty for whoever needs no key, or has the one of --api-key."""
    name: str = ""
    lane: Lane = Lane.NORMAL
    share_percent: int = 100
    max_requests: int = 0

    @classmethod
    def of_key(cls, key: ServerKey) -> Caller:
        return cls(
            key_id=key.key_id,
            name=key.name,
            lane=key.lane,
            share_percent=key.share_percent,
            max_requests=key.max_requests,
        )


ANONYMOUS = Caller()


class KeyRing(Protocol):
    """The keys that there are, asked anew for every request."""

    @property
    def keys(self) -> tuple[ServerKey, ...]: ...

    def caller(self, secret: str) -> Caller | None:
        """Whose secret that is."""


class NoKeys:
    """For a server that knows none but --api-key."""

    keys: tuple[ServerKey, ...] = ()

    def caller(self, secret: str) -> Caller | None:
        return None
