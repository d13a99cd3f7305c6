"""Turns every error into a notice: one table from code to level, words and what can be done.

GUI thread, no Qt. An error's own text is the notice's detail; the table's sentence is the headline.
"""

from __future__ import annotations

import logging

from engine.errors import EngineError
from studio.models.errors import StudioError, ToolsTooLong
from studio.models.notices import Notice, NoticeAction, NoticeLevel, NoticeList

_log = logging.getLogger(__name__)

_Row = tuple[NoticeLevel, str, NoticeAction]

NOTICE_TABLE: dict[str, _Row] = {
    "engine_error": (NoticeLevel.ERROR, "The engine had a problem", NoticeAction.NONE),
    "invalid_request": (NoticeLevel.WARNING, "This cannot be asked like that", NoticeAction.NONE),
    "invalid_value": (NoticeLevel.WARNING, "A value is not allowed", NoticeAction.OPEN_SETTINGS),
    "context_length_exceeded": (
        NoticeLevel.WARNING,
        "This chat no longer fits the model's window",
        NoticeAction.NEW_CHAT,
    ),
    "pool_full": (
        NoticeLevel.WARNING,
        "This chat outgrew the room there is for all of them",
        NoticeAction.OPEN_SETTINGS,
    ),
    "waited_too_long": (
        NoticeLevel.WARNING,
        "There was no room for this in time",
        NoticeAction.NONE,
    ),
    "restore_failed": (
        NoticeLevel.ERROR,
        "A parked chat could not be brought back",
        NoticeAction.NONE,
    ),
    "suspended": (NoticeLevel.INFO, "A reply was put aside on disk", NoticeAction.NONE),
    "resume_refused": (
        NoticeLevel.WARNING,
        "A parked reply cannot go on; its text is kept",
        NoticeAction.NONE,
    ),
    "park_disk_failed": (
        NoticeLevel.WARNING,
        "Parked chats are not kept on disk",
        NoticeAction.OPEN_SETTINGS,
    ),
    "model_error": (NoticeLevel.ERROR, "This model cannot be used", NoticeAction.LOAD_MODEL),
    "model_not_found": (NoticeLevel.WARNING, "This model cannot be used", NoticeAction.OPEN_MODELS),
    "model_corrupt": (NoticeLevel.ERROR, "This model cannot be used", NoticeAction.LOAD_MODEL),
    "model_unsupported": (NoticeLevel.ERROR, "This model cannot be used", NoticeAction.LOAD_MODEL),
    "not_enough_memory": (
        NoticeLevel.ERROR,
        "The model does not fit into memory",
        NoticeAction.OPEN_SETTINGS,
    ),
    "model_unavailable": (NoticeLevel.WARNING, "No model is ready", NoticeAction.LOAD_MODEL),
    "device_failure": (NoticeLevel.ERROR, "The device failed during a step", NoticeAction.NONE),
    "engine_stopped": (NoticeLevel.ERROR, "The engine has stopped", NoticeAction.NONE),
    "studio_error": (NoticeLevel.ERROR, "Something did not work", NoticeAction.NONE),
    "setting_invalid": (
        NoticeLevel.WARNING,
        "A setting was not taken",
        NoticeAction.OPEN_SETTINGS,
    ),
    "store_failed": (NoticeLevel.ERROR, "Chats cannot be saved right now", NoticeAction.NONE),
    "store_busy": (NoticeLevel.ERROR, "Layby is already running", NoticeAction.NONE),
    "store_full": (NoticeLevel.ERROR, "The disk is full: chats are not saved", NoticeAction.NONE),
    "store_broken": (NoticeLevel.ERROR, "The chat history was damaged", NoticeAction.NONE),
    "store_moved": (NoticeLevel.WARNING, "The chat history was moved", NoticeAction.NONE),
    "library_refused": (NoticeLevel.WARNING, "The library was not changed", NoticeAction.NONE),
    "attachment_refused": (
        NoticeLevel.WARNING,
        "A file was not attached",
        NoticeAction.NONE,
    ),
    "tool_server_failed": (
        NoticeLevel.WARNING,
        "A server of tools did not work",
        NoticeAction.OPEN_TOOL_SERVERS,
    ),
    "tools_too_long": (
        NoticeLevel.WARNING,
        "A chat has no room for its tools",
        NoticeAction.CHOOSE_TOOLS,
    ),
    "support_failed": (
        NoticeLevel.WARNING,
        "The log bundle was not saved",
        NoticeAction.NONE,
    ),
    "exchange_failed": (
        NoticeLevel.WARNING,
        "Chats were not exported or imported",
        NoticeAction.NONE,
    ),
    "server_failed": (
        NoticeLevel.ERROR,
        "The local server did not start",
        NoticeAction.OPEN_SERVER,
    ),
    "port_taken": (
        NoticeLevel.WARNING,
        "The local server's port is taken",
        NoticeAction.OPEN_SERVER,
    ),
    "fetch_failed": (NoticeLevel.ERROR, "The model was not fetched", NoticeAction.GET_MODEL),
    "fetch_unavailable": (NoticeLevel.ERROR, "The model was not fetched", NoticeAction.GET_MODEL),
    "fetch_mismatch": (
        NoticeLevel.ERROR,
        "The download was not the promised file",
        NoticeAction.GET_MODEL,
    ),
    "fetch_no_space": (
        NoticeLevel.ERROR,
        "The disk is too full for the model",
        NoticeAction.OPEN_MODELS,
    ),
    "fetch_cancelled": (NoticeLevel.INFO, "The download was stopped", NoticeAction.GET_MODEL),
}
"""Every code of `engine.errors` and `studio.models.errors` has a row; a test walks both trees."""


UNEXPECTED_NOTICE = Notice(
    code="unexpected",
    level=NoticeLevel.WARNING,
    text="Something in Layby did not work; chats go on, and the log has the particulars.",
    action=NoticeAction.LOG_BUNDLE,
)
CRASHED_NOTICE = Notice(
    code="crashed_before",
    level=NoticeLevel.WARNING,
    text="Layby ended unexpectedly the last time; what was saved is here.",
    action=NoticeAction.LOG_BUNDLE,
)


class NoticeService:
    """All that should reach the user goes through `report` or `show`; views show `notices`."""

    def __init__(self) -> None:
        self.notices = NoticeList()

    def report(self, error: EngineError | StudioError) -> None:
        """Show what the table says about the error, with the error's own text as the detail."""
        cause = error.__cause__
        _log.info("%s: %s%s", error.code, error, f" ({cause!r})" if cause is not None else "")
        self.notices.add(notice_for(error))

    def show(self, notice: Notice) -> None:
        """Show a notice that is no error."""
        self.notices.add(notice)

    def update(self, notice: Notice) -> None:
        """Say something else in its place; nothing where the user has put it away."""
        self.notices.update(notice)

    def show_unforeseen(self, notice: Notice) -> None:
        """Show what may come over and over by itself: while it stands it keeps its place, below what is newer."""
        if notice not in self.notices.notices:
            self.notices.add(notice)

    def resolve(self, code: str) -> None:
        """The cause is gone: take the notice away."""
        self.notices.dismiss(code)


def notice_for(error: EngineError | StudioError) -> Notice:
    """The notice that an error becomes."""
    level, text, action = NOTICE_TABLE[error.code]
    chat_id = error.chat_id if isinstance(error, ToolsTooLong) else 0
    return Notice(
        code=error.code, level=level, text=text, detail=str(error), action=action, chat_id=chat_id
    )
