"""Makes changed settings of parking hold at once, and tells when memory allows less than they say.

GUI thread, no Qt. A model that is loaded later brings the settings with it; this is for the one that is loaded now.
"""

from __future__ import annotations

from engine.api import DiskTrouble, EngineState, ModelChanged
from engine.client import EngineClient
from engine.errors import ParkDiskFailed
from engine.runs import SetParkBudget, SetVictimPolicy
from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.models.settings import Settings
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService

_MIB = 1 << 20
BUDGET_LOWERED = "park_budget_lowered"
"""Code of the notice; it stands as long as the model that has the lower budget."""


class ParkService:
    """Listens until it is closed."""

    def __init__(
        self, client: EngineClient, settings: SettingsService, notices: NoticeService
    ) -> None:
        self._client = client
        self._settings = settings
        self._notices = notices
        self._sent = settings.settings.park
        self._disconnects = (
            settings.changed.connect(self._on_settings),
            client.on_model_changed(self._on_model),
            client.on_disk_trouble(self._on_disk_trouble),
        )

    def close(self) -> None:
        """Listen no more."""
        for disconnect in self._disconnects:
            disconnect()

    def _on_settings(self, settings: Settings) -> None:
        before, self._sent = self._sent, settings.park
        if before.ram_mib != settings.park.ram_mib:
            self._client.control(SetParkBudget(budget_bytes=_bytes(settings.park.ram_mib)))
            self._tell_if_lowered()
        if before.policy is not settings.park.policy:
            self._client.control(SetVictimPolicy(name=settings.park.policy.value))

    def _on_model(self, event: ModelChanged) -> None:
        if event.state is EngineState.READY:
            self._notices.resolve(ParkDiskFailed.code)
            self._tell_if_lowered()
        else:
            self._notices.resolve(BUDGET_LOWERED)

    def _tell_if_lowered(self) -> None:
        """Whether the model that is loaded allows as much as the settings say."""
        wanted = self._settings.settings.park.ram_mib
        most = self._client.snapshot().parks.most_budget_bytes
        if 0 < most < _bytes(wanted):
            self._notices.show(_lowered(wanted, most // _MIB))
        else:
            self._notices.resolve(BUDGET_LOWERED)

    def _on_disk_trouble(self, event: DiskTrouble) -> None:
        self._notices.report(event.error)


def _bytes(mib: int) -> int:
    """A budget of the settings as the engine takes it; -1 stays no limit."""
    return mib * _MIB if mib > 0 else mib


def _lowered(wanted_mib: int, given_mib: int) -> Notice:
    return Notice(
        code=BUDGET_LOWERED,
        level=NoticeLevel.INFO,
        text="Parked chats may hold less memory than set",
        detail=(
            f"{given_mib:,} MiB instead of {wanted_mib:,} MiB: half of what was free once the model was loaded. "
            "What no longer fits is read again when its chat returns."
        ),
        action=NoticeAction.OPEN_SETTINGS,
    )
