"""How much of the model's window the chat and the draft take: "312 / 2,048". GUI thread.

Counted by the engine, off this thread, a moment after the last change; while a count is under way the old one stays.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget

from engine.api import EngineState
from studio.models.chat import Conversation, Message
from studio.services.context_service import ContextUse
from studio.views.chat.composer import Composer
from studio.views.context import Context
from studio.views.elided_label import WholeLabel
from studio.views.labels import dress
from studio.views.words import count, tr

_PAUSE_MS = 300
_NEARLY_FULL = 0.85


class ContextMeter(WholeLabel):
    """Figures only; a colour when it gets tight, and words for why."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("secondary")
        self.show_use(None)

    def show_use(self, use: ContextUse | None) -> None:
        """Nothing is shown where nothing is known."""
        self.setVisible(use is not None)
        if use is None:
            return
        self.setText(f"{count(use.tokens)} / {count(use.window_tokens)}")
        words = tr("{tokens} of {window} tokens: the chat and what is typed, as the model reads it")
        figures = words.format(tokens=count(use.tokens), window=count(use.window_tokens))
        self.setToolTip(figures)
        self.setAccessibleName(figures)
        share = use.tokens / use.window_tokens
        name = "secondary" if share < _NEARLY_FULL else "waiting" if use.fits else "failed"
        dress(self, name)


class ContextWatch(QObject):
    """Keeps the meter of a pane right; `show_chat` tells whose it is."""

    def __init__(self, context: Context, composer: Composer, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._service = context.services.chats.context
        self._desk = context.services.chats.desk
        self._composer = composer
        self._chat: Conversation | None = None
        self._is_counting = False
        self.meter = ContextMeter(composer)
        composer.add_figure(self.meter)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._start)
        composer.edited.connect(self.touch)
        self._disconnects = (
            context.services.chats.chat_changed.connect(self._on_chat_changed),
            context.services.chats.path_changed.connect(self._on_chat_changed),
            context.services.chats.message_changed.connect(self._on_message_changed),
            context.services.models.changed.connect(self.touch),
            *(() if self._desk is None else (self._desk.service.changed.connect(self._on_tools),)),
        )

    def close(self) -> None:
        """Count no more."""
        for disconnect in self._disconnects:
            disconnect()
        self._timer.stop()
        self._chat = None

    def show_chat(self, chat: Conversation) -> None:
        """Count this chat from now on."""
        self._chat = chat
        self.meter.show_use(None)
        self.touch()

    def touch(self) -> None:
        """Something that counts has changed."""
        if self._chat is not None and not self._timer.isActive():
            self._timer.start()

    def _on_tools(self, _server: str) -> None:
        self.touch()

    def _on_chat_changed(self, chat: Conversation) -> None:
        if chat is self._chat:
            self.touch()

    def _on_message_changed(self, message: Message) -> None:
        if self._chat is not None and message.chat_id == self._chat.chat_id:
            self.touch()

    def _start(self) -> None:
        if self._chat is None:
            return
        if self._context.services.models.state is not EngineState.READY:
            self.meter.show_use(None)
        elif self._is_counting:
            self._timer.start()
        else:
            # Read now: by the time the count begins the pane may be gone.
            self._context.tasks.start(self._count(self._chat, self._composer.text()))

    async def _count(self, chat: Conversation, draft: str) -> None:
        self._is_counting = True
        if self._desk is not None and draft:
            self._desk.service.start_soon(chat.tools.servers)  # the message will need them
        try:
            use = await self._service.estimate(chat, draft)
        finally:
            self._is_counting = False
        if chat is self._chat:
            self.meter.show_use(use)
