"""What the window is given: the services, and the server's switch, which only the composition root can provide.

GUI thread. Must not import other views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from studio.models.signal import Signal
from studio.services.chat_service import ChatService
from studio.services.model_service import ModelService
from studio.services.notice_service import NoticeService
from studio.services.park_history import ParkHistory
from studio.services.reload_service import ReloadService
from studio.services.run_service import RunService
from studio.services.settings_service import SettingsService


class ServerControl(Protocol):
    """The local server's switch. Failures to start become notices, not exceptions."""

    @property
    def address(self) -> str | None:
        """Like `http://127.0.0.1:8484` while the server listens, else None."""

    @property
    def changed(self) -> Signal[[]]:
        """Emitted on the GUI thread when `address` has changed."""

    async def start(self) -> None:
        """Listen at the address of the settings."""

    async def stop(self) -> None:
        """Listen no more; requests of programs end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowServices:
    """All that the window talks to."""

    chats: ChatService
    models: ModelService
    notices: NoticeService
    settings: SettingsService
    server: ServerControl
    runs: RunService
    history: ParkHistory
    reloads: ReloadService
