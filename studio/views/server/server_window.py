"""The window of the local server: its switch, its keys, its requests, and how programs find it. GUI thread."""

from __future__ import annotations

from enum import IntEnum

from PySide6.QtWidgets import QWidget

from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.paged_dialog import PagedDialog
from studio.views.server.connect_page import ConnectPage
from studio.views.server.keys_page import KeysPage
from studio.views.server.requests_page import RequestsPage
from studio.views.server.server_page import ServerPage
from studio.views.words import tr


class ServerPages(IntEnum):
    """The pages in their order."""

    SERVER = 0
    KEYS = 1
    REQUESTS = 2
    CONNECT = 3


class ServerWindow(PagedDialog):
    """Stays open beside the main window."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(tr("Local server"), parent)
        self.server = ServerPage(context, self)
        self.keys = KeysPage(context, self)
        self.requests = RequestsPage(context, self)
        self.connect_page = ConnectPage(context, self)
        self.server.keys_wanted.connect(lambda: self.show_page(ServerPages.KEYS))
        self.keys.created.connect(self.connect_page.use_key)
        self.add_page(tr("Server"), self.server)
        self.add_page(tr("Keys"), self.keys)
        self.add_page(tr("Requests"), self.requests)
        self.add_page(tr("Connect"), self.connect_page)
        self.finished.connect(self._on_finished)

    def show_setting(self, key: str) -> None:
        self.show_page(ServerPages.SERVER)
        self.server.show_setting(key)

    def reject(self) -> None:
        """Escape, and the window's own button: asked about first while a key would be lost by it."""
        secret = self.keys.secret
        if not secret.is_only_here:
            super().reject()
            return
        self.show_page(ServerPages.KEYS)
        question = Question(
            text=tr("Close without the key “{name}”?").format(name=secret.name),
            detail=tr("It was not copied, and it cannot be shown again."),
            do=tr("Close"),
        )
        confirm(question, lambda: self.done(0), self)

    def _on_finished(self) -> None:
        for page in (self.server, self.keys, self.requests, self.connect_page):
            page.close_page()
