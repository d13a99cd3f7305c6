"""Lets the key for undoing through to the window where the text in focus has nothing to undo itself. GUI thread.

A field keeps that key from every command, whether it has a use for it or not; so what has just been deleted could not
be taken back while the cursor stands in an empty field, where it nearly always stands. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QTextEdit, QWidget


class UndoKey(QObject):
    """Watches the field that has the focus, and no other."""

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        app.focusChanged.connect(self._on_focus_changed)

    def close(self) -> None:
        """Watch no more."""
        self._app.focusChanged.disconnect(self._on_focus_changed)
        self._on_focus_changed(self._app.focusWidget(), None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.ShortcutOverride or not isinstance(event, QKeyEvent):
            return False
        is_undo = event.matches(QKeySequence.StandardKey.Undo)
        return is_undo and isinstance(watched, QWidget) and not _can_undo(watched)

    def _on_focus_changed(self, old: QWidget | None, now: QWidget | None) -> None:
        if old is not None:
            old.removeEventFilter(self)
        if now is not None:
            now.installEventFilter(self)


def _can_undo(field: QWidget) -> bool:
    if isinstance(field, QTextEdit | QPlainTextEdit):
        return not field.isReadOnly() and field.document().isUndoAvailable()
    inner = (
        field if isinstance(field, QLineEdit) else field.findChild(QLineEdit)
    )  # a field of figures
    return inner is not None and inner.isUndoAvailable()
