"""Brings files to a pane's composer: by a button, by dropping them on the pane, by pasting. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.api import EngineState
from studio.models.attachment import Attachment
from studio.models.chat import Conversation
from studio.models.errors import AttachmentError
from studio.views.actions import CommandId
from studio.views.chat.attachment_bar import AttachmentBar
from studio.views.chat.composer import Composer
from studio.views.context import Context
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.icon_button import IconButton
from studio.views.key_hints import hint
from studio.views.words import tr


class Attaching(QObject):
    """One for each pane; `show_chat` tells it whose draft the files are for."""

    def __init__(self, context: Context, composer: Composer, pane: QWidget) -> None:
        super().__init__(pane)
        self._context = context
        self._service = context.services.chats.attachments
        self._composer = composer
        self._pane = pane
        self._chat: Conversation | None = None
        self.bar = AttachmentBar(composer)
        self.bar.remove_wanted.connect(self._remove)
        self.button = IconButton("attach", tr("Attach files"), composer)
        hint(self.button, tr("Attach files"), CommandId.ATTACH)
        self.button.clicked.connect(self.choose)
        composer.add_head(self.bar)
        composer.add_tool(self.button)
        composer.mime_offered.connect(self._take)
        pane.setAcceptDrops(True)
        pane.installEventFilter(self)
        self._disconnects = (
            context.services.chats.chat_changed.connect(self._on_changed),
            self._service.changed.connect(self._on_changed),
            context.services.models.changed.connect(self._on_model_changed),
        )

    def close(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()
        self._pane.removeEventFilter(self)
        self._chat = None

    def show_chat(self, chat: Conversation) -> None:
        """Show the files of this chat's draft from now on."""
        self._chat = chat
        self._refresh()

    def choose(self) -> QFileDialog:
        """Ask for files to attach."""
        dialog = file_dialog(self._pane, tr("Attach files"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda names: self.attach([Path(name) for name in names]))
        dialog.open()
        return dialog

    def attach(self, paths: Sequence[Path]) -> None:
        """Add files to the draft, which is what is written next."""
        if self._chat is not None and paths:
            self._context.tasks.start(self._service.attach_files(self._chat, paths))
            self._composer.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kinds = QEvent.Type
        if event.type() in (kinds.DragEnter, kinds.DragMove, kinds.Drop):
            assert isinstance(event, QDropEvent)
            if event.mimeData().hasUrls():
                event.acceptProposedAction()
                if event.type() == kinds.Drop:
                    self._take(event.mimeData())
                return True
        return super().eventFilter(watched, event)

    def _take(self, data: QMimeData) -> None:
        paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
        if paths:
            self.attach(paths)
        elif data.hasImage():
            problem = tr(
                "a picture was pasted, and the model cannot see; say in words what is on it"
            )
            self._context.services.notices.report(AttachmentError(problem))

    def _remove(self, attachment: Attachment) -> None:
        if self._chat is not None:
            self._context.tasks.start(self._service.remove(self._chat, attachment))
            self._composer.setFocus()

    def _on_changed(self, chat: Conversation) -> None:
        if chat is self._chat:
            self._refresh()

    def _on_model_changed(self) -> None:
        chat = self._chat
        is_ready = self._context.services.models.state is EngineState.READY
        if is_ready and chat is not None and chat.draft_attachments:
            self._context.tasks.start(self._service.count_again(chat))

    def _refresh(self) -> None:
        if self._chat is not None:
            files = self._chat.draft_attachments
            self.bar.show_files(files, self._service.reading(self._chat))
            self._composer.set_has_files(has_files=bool(files))
