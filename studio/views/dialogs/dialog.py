"""What all windows beside the main one are. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog

from studio.views.focus_order import come_home


class Dialog(QDialog):
    """The keyboard stays near where it was when a button that it stood on goes away."""

    def focusNextPrevChild(self, forward: bool) -> bool:
        return come_home(self) or super().focusNextPrevChild(forward)
