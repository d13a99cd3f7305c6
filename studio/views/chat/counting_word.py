"""A word beside the buttons while a message is counted before it is sent, where that takes more than a moment.

GUI thread. Tools whose servers have to start first are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QTimer
from shiboken6 import isValid

from studio.models.chat import Conversation
from studio.models.tool_servers import LinkState
from studio.services.tools.tool_desk import ToolDesk
from studio.views.chat.composer import Composer
from studio.views.elided_label import WholeLabel
from studio.views.words import tr

_AFTER_MS = 200


class CountingWord(WholeLabel):
    """`show_chat` says whose is shown."""

    def __init__(self, composer: Composer, desk: ToolDesk | None) -> None:
        super().__init__(composer)
        self.setObjectName("secondary")
        self._desk = desk
        self._chat: Conversation | None = None
        self._counted: set[Conversation] = set()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_AFTER_MS)
        self._timer.timeout.connect(self._show)
        self.hide()
        composer.add_figure(self)

    def is_counting(self, chat: Conversation) -> bool:
        """Whether a message of that chat is being counted."""
        return chat in self._counted

    @contextmanager
    def counting(self, chat: Conversation) -> Iterator[None]:
        """A message of that chat is counted meanwhile."""
        self._counted.add(chat)
        self._refresh()
        try:
            yield
        finally:
            self._counted.discard(chat)
            if isValid(self):  # the pane may have been closed meanwhile
                self._refresh()

    def show_chat(self, chat: Conversation | None) -> None:
        """Tell of this chat only."""
        self._chat = chat
        self._refresh()

    def _refresh(self) -> None:
        if self._chat is None or self._chat not in self._counted:
            self._timer.stop()
            self.hide()
        elif self.isHidden() and not self._timer.isActive():
            self._timer.start()

    def _show(self) -> None:
        self.setText(tr("Starting the tools…") if self._are_tools_starting() else tr("Counting…"))
        self.show()

    def _are_tools_starting(self) -> bool:
        names = self._chat.tools.servers if self._chat is not None else ()
        return self._desk is not None and any(
            self._desk.service.status(name).state is LinkState.STARTING for name in names
        )
