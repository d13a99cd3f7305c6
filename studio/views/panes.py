"""The chats side by side: at least one pane, one of them active. GUI thread.

Which chat stands where is decided here; a chat stands in one pane at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QSplitter, QWidget

from studio.models.chat import Conversation
from studio.views import window_size
from studio.views.chat.chat_pane import ChatPane
from studio.views.context import Context

MAX_PANES = 4
LEAST_PANE_PX = 320
"""So wide is each pane, or there is no room for one more."""
_NARROWEST_PX = 260
"""So narrow a pane may become for what is opened beside it, and narrower only on a small screen."""
_BESIDE_PX = 344
"""What may be opened beside them, and the hairlines between."""
_LEAST_HEIGHT_PX = 200


class PaneArea(QSplitter):
    """`changed` tells that another pane is active, that it shows another chat, or that the number of panes changed."""

    changed = Signal()
    tools_wanted = Signal()
    """Where the tools of the active pane's chat are chosen is asked for."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._context = context
        self.setChildrenCollapsible(False)
        self.setHandleWidth(1)
        self.setMinimumHeight(_LEAST_HEIGHT_PX)
        self.panes: list[ChatPane] = []
        self._add_pane()
        self.active = self.panes[0]
        self._app().focusChanged.connect(self._on_focus_changed)

    def close_area(self) -> None:
        """Close all panes; the area is of no use afterwards."""
        self._app().focusChanged.disconnect(self._on_focus_changed)
        for pane in self.panes:
            pane.close_pane()

    def pane_of(self, chat: Conversation) -> ChatPane | None:
        """The pane that shows a chat, if one does."""
        return next((pane for pane in self.panes if pane.chat is chat), None)

    async def show_chat(self, chat: Conversation) -> None:
        """Go to the pane that shows the chat, or show it in the active pane."""
        pane = self.pane_of(chat)
        if pane is not None:
            self.activate(pane)
            return
        await self._show(self.active, chat)

    async def split(self, chat: Conversation) -> None:
        """Show a chat in a new pane beside the others."""
        pane = self._add_pane()
        self.setSizes([self.width() // len(self.panes)] * len(self.panes))
        self._show_headers()
        await self._show(pane, chat)

    async def show_columns(self, chats: Sequence[Conversation]) -> None:
        """Show these chats side by side and no others, as many as there is room for."""
        for pane in [pane for pane in self.panes if pane is not self.active]:
            self.close_pane(pane)
        await self._show(self.active, chats[0])
        for chat in chats[1:]:
            if self.can_split:
                await self.split(chat)
        self.activate(self.panes[0])

    async def _show(self, pane: ChatPane, chat: Conversation) -> None:
        """The keyboard is in the pane at once; to read a chat may take a while."""
        if pane.chat is not chat:
            pane.turn_to(chat)
        self.activate(pane)
        await pane.read_chat()
        if pane in self.panes:  # it may have been closed meanwhile
            self.changed.emit()

    def close_pane(self, pane: ChatPane) -> None:
        """Take a pane away; the last one stays."""
        if len(self.panes) == 1:
            return
        place = self.panes.index(pane)
        self.panes.remove(pane)
        pane.close_pane()
        self._show_headers()
        if pane is self.active:
            self.activate(self.panes[max(0, place - 1)])
        self.changed.emit()

    def activate(self, pane: ChatPane) -> None:
        """Make a pane the one that commands go to, and put the cursor into it."""
        pane.composer.setFocus(Qt.FocusReason.OtherFocusReason)
        self._set_active(pane)

    def activate_next(self) -> None:
        """Go to the pane at the right, or around to the first."""
        self.activate(self.panes[(self.panes.index(self.active) + 1) % len(self.panes)])

    @property
    def can_split(self) -> bool:
        """Whether there is room for one more."""
        num_panes = len(self.panes) + 1
        return num_panes <= MAX_PANES and self.width() >= num_panes * LEAST_PANE_PX

    @staticmethod
    def _app() -> QApplication:
        return cast(QApplication, QApplication.instance())

    def _add_pane(self) -> ChatPane:
        pane = ChatPane(self._context, self)
        pane.close_wanted.connect(lambda: self.close_pane(pane))
        pane.sending.tools_wanted.connect(self.tools_wanted)
        self.panes.append(pane)
        self.addWidget(pane)
        self._show_headers()
        return pane

    def _show_headers(self) -> None:
        num_panes = len(self.panes)
        room_px = window_size.available(self).width() - _BESIDE_PX
        for pane in self.panes:
            pane.set_header_visible(is_visible=num_panes > 1)
            pane.setMinimumWidth(min(_NARROWEST_PX, room_px // num_panes))

    def _set_active(self, active: ChatPane) -> None:
        self.active = active
        for pane in self.panes:
            pane.set_active(is_active=pane is active)
        self.changed.emit()

    def _on_focus_changed(self, _old: QWidget | None, now: QWidget | None) -> None:
        pane = next((pane for pane in self.panes if pane.owns(now)), None)
        if pane is not None and pane is not self.active:
            self._set_active(pane)
