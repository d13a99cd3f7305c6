"""Links say where they lead before they open: a menu with the address, Open and Copy. GUI thread.

Only addresses of harmless kinds can be opened, and only in the system's own browser or mail program.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QAction, QCursor, QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMenu, QTextEdit, QWidget

from studio.views.words import shortened, tr

_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
_ADDRESS_CHARS = 80


def can_open(url: QUrl) -> bool:
    """Whether the link is of a kind that may be handed to the system."""
    return url.scheme().lower() in _SAFE_SCHEMES


def open_link(url: QUrl) -> bool:
    """Hand a link to the system's browser or mail program; False, and nothing done, for any other kind of link."""
    return can_open(url) and QDesktopServices.openUrl(url)


def offer_link(url: QUrl, parent: QWidget) -> QMenu:
    """Show where a link leads and what can be done with it."""
    address = url.toString()
    menu = QMenu(parent)
    menu.setAccessibleName(tr("Link"))
    where = menu.addAction(shortened(address, _ADDRESS_CHARS).replace("&", "&&"))
    where.setEnabled(False)
    menu.addSeparator()
    go = QAction(tr("Open in the browser"), menu)
    go.setEnabled(can_open(url))
    go.triggered.connect(lambda: open_link(url))
    copy = QAction(tr("Copy the address"), menu)
    copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(address))
    menu.addActions([go, copy])
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(_place(parent))
    return menu


def _place(parent: QWidget) -> QPoint:
    """Where the mouse is, or below the link that the keyboard is on."""
    is_mouse = parent.rect().contains(parent.mapFromGlobal(QCursor.pos()))
    if is_mouse or not isinstance(parent, QTextEdit):
        return QCursor.pos()
    return parent.viewport().mapToGlobal(parent.cursorRect().bottomLeft())
