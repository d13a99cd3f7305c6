"""At the foot of the settings: which of them count only later, and a button that has it happen now. GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from studio.models.settings import setting_field
from studio.models.signal import Signal
from studio.views.ports import WindowServices
from studio.views.quit_flow import QuitFlow
from studio.views.reload_flow import ReloadFlow
from studio.views.settings.own_note import counting_name
from studio.views.words import tr

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Settings that wait for the same thing."""

    text: str
    """With a place for their `{names}`."""
    button: str
    keys: Callable[[], tuple[str, ...]]
    name_of: Callable[[str], str]
    changed: Signal[[]]
    """The keys may be others now."""
    do: Callable[[], object]


class PendingBar(QFrame):
    """Hidden while there are none."""

    def __init__(self, pending: Pending, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("pending")
        self._pending = pending
        self._text = QLabel(self)
        self._text.setObjectName("waiting")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self.button = QPushButton(pending.button, self)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(pending.do)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 8, 0, 0)
        layout.setSpacing(12)
        layout.addWidget(self._text, 1)
        layout.addWidget(self.button)
        disconnect = pending.changed.connect(self._refresh)
        self.destroyed.connect(lambda: disconnect())
        self._refresh()

    def _refresh(self) -> None:
        keys = self._pending.keys()
        self.setVisible(bool(keys))
        names = [self._pending.name_of(key) for key in keys[:_MOST_NAMED]]
        if len(keys) > _MOST_NAMED:
            names.append("…")
        self._text.setText(self._pending.text.format(names=", ".join(names)))


class PendingBars(QWidget):
    """What waits for the model to be loaded again, and what for the program to start again."""

    def __init__(
        self,
        services: WindowServices,
        reload_flow: ReloadFlow,
        quit_flow: QuitFlow,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        reload = Pending(
            text=tr("Will count once the model is loaded again: {names}"),
            button=tr("Load the model again…"),
            keys=services.reloads.pending,
            name_of=lambda key: counting_name(services.models, key),
            changed=services.reloads.changed,
            do=reload_flow.load_again,
        )
        restart = Pending(
            text=tr("Will count once Layby has started again: {names}"),
            button=tr("Restart Layby"),
            keys=services.restarts.pending,
            name_of=lambda key: tr(setting_field(key).info.title),
            changed=services.restarts.changed,
            do=quit_flow.restart,
        )
        self.reload, self.restart = PendingBar(reload, self), PendingBar(restart, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.reload)
        layout.addWidget(self.restart)
