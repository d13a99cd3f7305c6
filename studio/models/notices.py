"""Notices: what the user should know, newest first, one for each code.

Plain state, owned by the GUI thread; no Qt.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from studio.models.signal import Signal


class NoticeLevel(Enum):
    """How much it matters. Red is only for ERROR: something is lost or has failed."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoticeAction(Enum):
    """What a notice's button does; NONE has no button."""

    NONE = "none"
    LOAD_MODEL = "load_model"
    GET_MODEL = "get_model"
    NEW_CHAT = "new_chat"
    LOG_BUNDLE = "log_bundle"
    OPEN_SETTINGS = "open_settings"
    OPEN_SERVER = "open_server"
    OPEN_MODELS = "open_models"
    STOP_IMPORT = "stop_import"
    CHOOSE_TOOLS = "choose_tools"
    OPEN_TOOL_SERVERS = "open_tool_servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence for the user (`text`), the particulars (`detail`), at most one thing to do."""

    code: str
    level: NoticeLevel
    text: str
    detail: str = ""
    action: NoticeAction = NoticeAction.NONE
    chat_id: int = 0
    """The chat that it is about; 0: none."""
    is_progress: bool = False
    """It tells how far something is: its words change often, and are spoken once."""


class NoticeList:
    """The notices that stand, newest first. A notice replaces an older one with the same code."""

    def __init__(self) -> None:
        self.notices: tuple[Notice, ...] = ()
        self.changed: Signal[[]] = Signal()

    def add(self, notice: Notice) -> None:
        self.notices = (notice, *(old for old in self.notices if old.code != notice.code))
        self.changed.emit()

    def update(self, notice: Notice) -> None:
        """Say this in the place of the notice with the same code; nothing where that has been put away."""
        if any(old.code == notice.code for old in self.notices):
            self.notices = tuple(notice if old.code == notice.code else old for old in self.notices)
            self.changed.emit()

    def dismiss(self, code: str) -> None:
        """Take the notice with this code away; none there is fine and tells nobody."""
        left = tuple(notice for notice in self.notices if notice.code != code)
        if left != self.notices:
            self.notices = left
            self.changed.emit()
