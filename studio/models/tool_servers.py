"""Servers of tools, as the user declares them. Plain immutable state, any thread; no Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from studio.models.errors import ToolServerError

MOST_NAME_CHARS = 64
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """A program that is started and spoken with over its input and output, or an address that is spoken with by HTTP.

    Raises ToolServerError, naming the field, the value and the remedy.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    """Variables beside the few that every program needs."""
    folder: str = ""
    """Where the program starts; empty: where Layby did."""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    is_on: bool = False
    """Off: nothing is started or spoken with, whatever chats ask for."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ToolServerError("a server of tools needs a name")
        if not _NAME.fullmatch(self.name) or self.name != self.name.strip():
            raise ToolServerError(
                f"the name {self.name[:80]!r} is not allowed; take 1 to {MOST_NAME_CHARS} characters on one line"
            )
        if bool(self.command.strip()) == bool(self.url):
            raise ToolServerError(
                f"{self.name}: give either the command of a program or the address of a server"
            )
        if self.url and not _is_address(self.url):
            raise ToolServerError(
                f"{self.name}: {self.url!r} is no address; it begins with http:// or https://"
            )
        for text in (
            self.command,
            *self.args,
            self.folder,
            *(t for pair in self.env for t in pair),
        ):
            if "\0" in text:
                raise ToolServerError(
                    f"{self.name}: command and variables may not hold a zero byte"
                )

    @property
    def is_program(self) -> bool:
        return bool(self.command)


class LinkState(Enum):
    """How a server stands."""

    OFF = "off"
    """Not started: nobody has needed it yet, or it was stopped."""
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """A tool that a server offers."""

    name: str
    title: str = ""
    description: str = ""
    parameters: str = "{}"
    """JSON schema of its arguments, as JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStatus:
    """A server's state, in words where it failed."""

    state: LinkState = LinkState.OFF
    problem: str = ""
    tools: tuple[ToolFacts, ...] = ()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
