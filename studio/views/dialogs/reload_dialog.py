"""What is to become of those who run when a model is loaded: named, with a choice of three. GUI thread.

It does not block the window: chats may be read and stopped beside it. After *wait* it stays, crossing off who has
ended, so that the wait can be seen, shortened and given up.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from studio.services.reload_service import Affected, ReloadChoice, ReloadService, Target
from studio.views.dialogs.dialog import Dialog
from studio.views.labels import line
from studio.views.words import plural, shortened, tr

_MOST_NAMED = 6
_NAME_CHARS = 60
_WIDTH_PX = 460


class ReloadDialog(Dialog):
    """`chosen` carries a ReloadChoice. Closing it gives up a wait."""

    chosen = Signal(object)

    def __init__(self, reloads: ReloadService, target: Target, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(_WIDTH_PX)
        self.has_folder = False
        """Whether parked chats are kept on disk, and so wait for their model."""
        self._reloads = reloads
        self._target = target
        self._is_waiting = False
        self._title = line("", "title", self)
        self._names = line("", "", self)
        self.buttons: dict[ReloadChoice, QPushButton] = {}
        self._helps: dict[ReloadChoice, QLabel] = {}
        self._lay_out()
        self.refresh()
        self._disconnect = reloads.changed.connect(self._on_changed)
        self.finished.connect(self._on_finished)

    def refresh(self) -> None:
        """Say who runs now and what each choice does."""
        affected = self._reloads.affected()
        self.setWindowTitle(self._question())
        self._title.setText(self._waits() if self._is_waiting else self._question())
        self._names.setText(name_list(affected))
        for choice, (text, help_text) in self._choices(affected).items():
            self.buttons[choice].setText(text)
            self.buttons[choice].setAccessibleDescription(help_text)
            self._helps[choice].setText(help_text)
        for widget in (self.buttons[ReloadChoice.WAIT], self._helps[ReloadChoice.WAIT]):
            widget.setVisible(not self._is_waiting)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def _fit(self) -> None:
        """As high as the sentences need at this width; a dialog does not see to that by itself."""
        if (layout := self.layout()) is not None:
            layout.activate()
            self.setFixedHeight(layout.totalHeightForWidth(_WIDTH_PX))

    def _question(self) -> str:
        if self._target.name is None:
            return tr("Unload the model while replies run?")
        if self._reloads.is_same_model(self._target):
            return tr("Load the model again while replies run?")
        return tr("Load another model while replies run?")

    def _waits(self) -> str:
        if self._target.name is None:
            return tr("The model is unloaded once these have ended")
        return tr("The model is loaded once these have ended")

    def _choices(self, affected: tuple[Affected, ...]) -> dict[ReloadChoice, tuple[str, str]]:
        stop = (tr("Stop them"), tr("They end here; what they have written is kept."))
        wait = (tr("Wait for them"), tr("It happens by itself once all of these have ended."))
        if self._reloads.is_same_model(self._target):
            park = (
                tr("Park, and continue afterwards"),
                tr("They wait while the model loads, then go on from the same word by themselves."),
            )
        elif self.has_folder:
            park = (
                tr("Park until their model is back"),
                tr("What they have written is kept; chats go on when their model is loaded again."),
            )
        else:
            park = (
                tr("Interrupt them"),
                tr("What they have written is kept, and chats can be continued from there."),
            )
        if not all(one.is_chat for one in affected) and not self._reloads.is_same_model(
            self._target
        ):
            park = (park[0], f"{park[1]} {tr('Requests of programs end with an error.')}")
        return {ReloadChoice.PARK: park, ReloadChoice.WAIT: wait, ReloadChoice.STOP: stop}

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(4)
        layout.addWidget(self._title)
        layout.addWidget(self._names)
        layout.addSpacing(12)
        for choice in (ReloadChoice.PARK, ReloadChoice.WAIT, ReloadChoice.STOP):
            button = QPushButton(self)
            button.setAutoDefault(False)
            button.clicked.connect(lambda _=False, choice=choice: self._choose(choice))
            if choice is ReloadChoice.PARK:
                button.setObjectName("primary")
            self.buttons[choice] = button
            self._helps[choice] = line("", "secondary", self)
            layout.addWidget(button)
            layout.addWidget(self._helps[choice])
            layout.addSpacing(8)
        cancel = QPushButton(tr("Cancel"), self)
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(cancel)
        layout.addLayout(foot)
        self.buttons[ReloadChoice.PARK].setFocus()

    def _choose(self, choice: ReloadChoice) -> None:
        self._is_waiting = choice is ReloadChoice.WAIT
        self.chosen.emit(choice)
        if self._is_waiting:
            self.refresh()
        else:
            self.accept()

    def _on_changed(self) -> None:
        if not self._is_waiting and not self._reloads.affected():
            self.chosen.emit(ReloadChoice.PARK)  # nobody is left to be asked about
            self.accept()
        elif self._is_waiting and not self._reloads.affected():
            self.accept()
        else:
            self.refresh()

    def _on_finished(self, result: int) -> None:
        self._disconnect()
        if result == QDialog.DialogCode.Rejected:
            self._reloads.cancel()


def name_list(affected: tuple[Affected, ...]) -> str:
    """Who runs, a line each, as far as there is room."""
    lines = []
    for one in affected[:_MOST_NAMED]:
        name = shortened(one.name, _NAME_CHARS)
        lines.append(tr("{name} (parked)").format(name=name) if one.is_parked else name)
    if (more := len(affected) - _MOST_NAMED) > 0:
        lines.append(plural(more, "and 1 more", "and {count} more"))
    return "\n".join(f"•  {line}" for line in lines)
