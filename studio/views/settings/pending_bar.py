"""At the foot of the settings: which of them count only once the model is loaded again, and a button. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from studio.models.settings import setting_field
from studio.services.reload_service import ReloadService
from studio.views.reload_flow import ReloadFlow
from studio.views.words import tr

_MOST_NAMED = 3


class PendingBar(QFrame):
    """Hidden while all that is set is what is loaded."""

    def __init__(self, reloads: ReloadService, flow: ReloadFlow, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("pending")
        self._reloads = reloads
        self._text = QLabel(self)
        self._text.setObjectName("waiting")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self.button = QPushButton(tr("Load the model again…"), self)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(flow.load_again)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 8, 0, 0)
        layout.setSpacing(12)
        layout.addWidget(self._text, 1)
        layout.addWidget(self.button)
        disconnect = reloads.changed.connect(self._refresh)
        self.destroyed.connect(lambda: disconnect())
        self._refresh()

    def _refresh(self) -> None:
        keys = self._reloads.pending()
        self.setVisible(bool(keys))
        pending = [setting_field(key) for key in keys[:_MOST_NAMED]]
        names = [tr(declared.info.title) for declared in pending]
        if len(keys) > _MOST_NAMED:
            names.append("…")
        text = tr("Once the model is loaded again, these will count: {names}")
        self._text.setText(text.format(names=", ".join(names)))
