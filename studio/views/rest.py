"""While nothing of the program can be seen, what is only for the eye rests. GUI thread; must not import services."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget

from studio.views.context import Context

_TELLING = (QEvent.Type.WindowStateChange, QEvent.Type.Show, QEvent.Type.Hide)


class Rest(QObject):
    """Follows a window; `has_others` tells whether there are windows beside it, which are seen without it."""

    def __init__(
        self, context: Context, window: QWidget, *, has_others: Callable[[], bool]
    ) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self._has_others = has_others
        window.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in _TELLING:
            self._choose()
        return False

    def _choose(self) -> None:
        is_hidden = self._window.isMinimized() or not self._window.isVisible()
        is_unseen = is_hidden and not self._has_others()
        for one in (self._context.frames, self._context.figures, self._context.watch):
            one.set_paused(is_paused=is_unseen)
