"""Between the wish to end the program, or to start it again, and its being done: where replies run, a question.

A signal of the system and the end of the session ask nothing: they go past this, to the window. GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from engine.api import EngineState
from studio.models.chat import Conversation
from studio.models.downloads import DownloadState
from studio.models.what_ran import WhatRan
from studio.services.server_service import ServerState
from studio.views.dialogs.confirm import Question, confirm
from studio.views.dialogs.reload_dialog import name_list
from studio.views.ports import WindowServices
from studio.views.words import plural, tr

_UNDER_WAY = frozenset(
    {DownloadState.QUEUED, DownloadState.RUNNING, DownloadState.WAITING, DownloadState.CHECKING}
)


class QuitFlow(QObject):
    """`dialog` is the open question, or None."""

    def __init__(
        self,
        services: WindowServices,
        window: QWidget,
        *,
        quit_window: Callable[[], None],
        own_windows: Callable[[], Iterable[Conversation]],
    ) -> None:
        """`quit_window` ends the program without a question; `own_windows` has the chats in windows of their own."""
        super().__init__(window)
        self.dialog: QMessageBox | None = None
        self._services = services
        self._window = window
        self._quit_window = quit_window
        self._own_windows = own_windows

    def quit(self) -> None:
        """End the program, or ask whether it shall end now, where replies run or something is not kept."""
        is_running, detail = bool(self._services.reloads.affected()), self._what_becomes()
        if self._services.support.wants_all_deleted or not detail:
            self._quit_window()
            return
        text = tr("Quit while replies run?") if is_running else tr("Quit Layby?")
        self._ask(Question(text=text, detail=detail, do=tr("Quit")), self._quit_window)

    def restart(self) -> None:
        """End the program and start it again, or ask the same."""
        is_running, detail = bool(self._services.reloads.affected()), self._what_becomes()
        if not detail:
            self._restart()
            return
        text = tr("Restart Layby while replies run?") if is_running else tr("Restart Layby?")
        self._ask(Question(text=text, detail=detail, do=tr("Restart")), self._restart)

    def close(self) -> None:
        """Close the question if one is open."""
        if self.dialog is not None:
            self.dialog.close()

    def _restart(self) -> None:
        self._services.restarts.what_ran = self._what_runs()
        self._quit_window()

    def _what_runs(self) -> WhatRan:
        services, models = self._services, self._services.models
        is_there = models.state in (EngineState.LOADING, EngineState.READY)
        loaded = str(models.model.path) if is_there and models.model is not None else ""
        downloads = (one for one in services.downloads.downloads if one.state in _UNDER_WAY)
        return WhatRan(
            model=services.settings.settings.engine.model if models.is_resting else loaded,
            has_server=services.server.state in (ServerState.STARTING, ServerState.ON),
            chat_ids=tuple(chat.chat_id for chat in self._own_windows() if not chat.is_temporary),
            download_ids=tuple(one.download_id for one in downloads),
        )

    def _ask(self, question: Question, do: Callable[[], None]) -> None:
        self.close()
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()  # it may be in the tray
        self._window.activateWindow()
        self.dialog = confirm(question, do, self._window)
        self.dialog.finished.connect(self._forget)

    def _forget(self) -> None:
        self.dialog = None

    def _what_becomes(self) -> str:
        """Of whoever runs, and of temporary chats, which nobody thought to lose; nothing where nothing is lost."""
        is_running, temporary = bool(self._services.reloads.affected()), self._temporary()
        gone = plural(
            temporary, "1 temporary chat is not kept.", "{count} temporary chats are not kept."
        )
        parts = [self._of_running() if is_running else "", gone if temporary else ""]
        return "\n\n".join(filter(None, parts))

    def _of_running(self) -> str:
        affected = self._services.reloads.affected()
        sentences = []
        if any(one.is_chat and not one.is_temporary for one in affected):
            is_on_disk = bool(self._services.settings.settings.park.folder)
            sentences.append(
                tr("Chats are kept on disk, and go on by themselves once their model is loaded.")
                if is_on_disk
                else tr("What they have written is kept, and chats can be continued from there.")
            )
        if not all(one.is_chat for one in affected):
            sentences.append(tr("Requests of programs end with an error."))
        return "\n\n".join(filter(None, (name_list(affected), " ".join(sentences))))

    def _temporary(self) -> int:
        """How many temporary chats have something in them."""
        chats = self._services.chats.chats
        return sum(one.is_temporary and bool(one.messages or one.draft) for one in chats)
