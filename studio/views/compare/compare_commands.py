"""Comparing from the window: asks what, makes the columns, shows them side by side. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QWidget

from engine.api import EngineState
from engine.errors import ModelUnavailable
from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.views.compare.compare_bar import CompareBar
from studio.views.compare.compare_dialog import CompareDialog
from studio.views.context import Context
from studio.views.panes import LEAST_PANE_PX, PaneArea
from studio.views.words import tr


class CompareCommands:
    """Built by the chat commands; `bar` belongs above the panes."""

    def __init__(
        self, context: Context, panes: PaneArea, sidebar: QWidget, window: QWidget
    ) -> None:
        self._context = context
        self._panes = panes
        self._sidebar = sidebar
        self._window = window
        self._service = context.services.chats.comparing
        self.bar = CompareBar(self._service, context.tasks, window)

    def ask(self) -> None:
        """Ask what is to be compared, beginning with the chat in the active pane."""
        if (chat := self._panes.active.chat) is not None:
            self.ask_of(chat)

    def ask_of(self, chat: Conversation) -> None:
        """The same, beginning with another chat."""
        if self._context.services.models.state is not EngineState.READY:
            self._context.services.notices.report(ModelUnavailable(tr("choose one first")))
            return
        dialog = CompareDialog(chat, self._context.services.chats.presets, self._window)
        dialog.wanted.connect(
            lambda text, settings: self._context.tasks.start(self._compare(chat, text, settings))
        )
        dialog.open()
        dialog.prompt.setFocus()

    async def _compare(
        self, chat: Conversation, text: str, settings: Sequence[ChatSettings]
    ) -> None:
        columns = await self._service.start(chat, text, settings)
        if columns:
            self._make_room(len(columns))
            await self._panes.show_columns(columns)
            await self._service.ask(columns, text)

    def _make_room(self, num_columns: int) -> None:
        """The side bar goes where the columns would not fit beside it."""
        if self._panes.width() < num_columns * LEAST_PANE_PX:
            self._sidebar.hide()
            page = self._panes.parentWidget()
            layout = page.layout() if page is not None else None
            if layout is not None:
                layout.activate()
