"""Says a sentence to whoever listens with a screen reader. GUI thread. Must not import services."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def say(source: QObject, text: str) -> None:
    """Have it spoken, as said by this widget; nobody listens, nothing happens."""
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(source, text))
