"""What the window is given: all services. GUI thread. Must not import other views."""

from __future__ import annotations

from dataclasses import dataclass

from studio.services.chat_service import ChatService
from studio.services.download_service import DownloadService
from studio.services.hub_search import HubSearch
from studio.services.model_service import ModelService
from studio.services.notice_service import NoticeService
from studio.services.park_history import ParkHistory
from studio.services.reload_service import ReloadService
from studio.services.restart_service import RestartService
from studio.services.run_service import RunService
from studio.services.server_service import ServerService
from studio.services.settings_service import SettingsService
from studio.services.support_service import SupportService


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowServices:
    """All that the window talks to."""

    chats: ChatService
    models: ModelService
    notices: NoticeService
    settings: SettingsService
    server: ServerService
    runs: RunService
    downloads: DownloadService
    hub: HubSearch
    history: ParkHistory
    reloads: ReloadService
    restarts: RestartService
    support: SupportService
