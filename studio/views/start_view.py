"""What stands where a chat has no message yet: how to get a model, how far that is, or one thing worth knowing.

GUI thread. It shows the state of `ModelService`; what its buttons ask for is done by `ModelActions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from engine.api import EngineState, ModelInfo
from studio.models.engine_state import FetchProgress
from studio.services.model_service import ModelService
from studio.views.model_actions import ModelActions
from studio.views.words import size, tr

_COLUMN_PX = 440
_MAX_OFFERED = 3


@dataclass(frozen=True, slots=True)
class _Choice:
    """A button: what it says and what it asks for."""

    text: str
    ask: Callable[[], None]
    tip: str = ""


class StartView(QWidget):
    """One calm screen. `refresh` shows what the model service says now."""

    def __init__(self, models: ModelService, actions: ModelActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._models = models
        self._actions = actions
        self._heading = QLabel(self)
        self._heading.setObjectName("heading")
        self._body = QLabel(self)
        self._body.setObjectName("body")
        for label in (self._heading, self._body):
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._progress = QProgressBar(self)
        self._progress.setTextVisible(False)
        self._progress.setRange(0, 1000)
        self._progress.setAccessibleName(tr("Progress"))
        self._buttons = QVBoxLayout()
        self._buttons.setSpacing(8)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(self._heading)
        column.addWidget(self._body)
        column.addSpacing(4)
        column.addWidget(self._progress)
        column.addLayout(self._buttons)
        column.addStretch(3)
        holder = QWidget(self)
        holder.setMaximumWidth(_COLUMN_PX)
        holder.setLayout(column)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(24, 24, 24, 24)
        layout.addWidget(holder)
        self._offered: list[QPushButton] = []
        self.refresh()

    def refresh(self) -> None:
        """Show the state of the model service; buttons are kept while they stay the same."""
        if self._models.fetching is not None:
            self._show_fetching(self._models.fetching)
        elif self._models.state is EngineState.LOADING:
            self._show_loading(self._models.model)
        elif self._models.state is EngineState.READY:
            self._show_ready()
        else:
            self._show_choice()

    def _show_fetching(self, fetching: FetchProgress) -> None:
        done, total = size(fetching.done_bytes), size(fetching.total_bytes)
        sentence = tr("{done} of {total}. You can write your first message meanwhile.")
        self._say(tr("Getting the model"), sentence.format(done=done, total=total))
        self._show_progress(fetching.share)
        self._offer((_Choice(tr("Cancel"), self._actions.cancel),), has_primary=False)

    def _show_loading(self, model: ModelInfo | None) -> None:
        name = model.name if model is not None else tr("the model")
        heading = tr("Loading {model}").format(model=name)
        self._say(heading, tr("You can write your first message meanwhile."))
        self._show_progress(self._models.progress)
        self._offer((_Choice(tr("Cancel"), self._actions.cancel),), has_primary=False)

    def _show_ready(self) -> None:
        self._say(
            tr("What is on your mind?"),
            tr(
                "Several chats can run at the same time: each goes on while you read another. "
                "Split shows two side by side."
            ),
        )
        self._offer((), has_primary=False)

    def _show_choice(self) -> None:
        error, entries = self._models.status.error, self._models.entries
        privacy = tr("It runs on this machine; nothing you write leaves it.")
        if error is not None:
            self._say(tr("The model did not load"), tr(str(error)))
        elif entries:
            self._say(tr("Which model?"), privacy)
        else:
            self._say(tr("First, a model"), privacy)
        choices = [
            _Choice(
                tr("Load {model}").format(model=entry.name),
                partial(self._actions.load, entry.name),
            )
            for entry in entries[:_MAX_OFFERED]
        ]
        if not entries:
            choices += [
                _Choice(
                    tr("Get the starter model ({size})").format(size=size(found.size_bytes)),
                    partial(self._actions.get, found.name),
                    tr("{model}, {license}").format(model=found.title, license=found.license),
                )
                for found in self._models.catalog[:1]
            ]
        choices.append(_Choice(tr("Use a file I have…"), self._actions.choose_file))
        self._offer(tuple(choices), has_primary=True)

    def _say(self, heading: str, body: str) -> None:
        self._progress.hide()
        self._heading.setText(heading)
        self._body.setText(body)

    def _show_progress(self, share: float) -> None:
        self._progress.show()
        self._progress.setValue(round(share * self._progress.maximum()))

    def _offer(self, choices: tuple[_Choice, ...], *, has_primary: bool) -> None:
        """Have one button for each choice; those that are there already stay, and keep the focus."""
        texts = [choice.text for choice in choices]
        if texts == [button.text() for button in self._offered]:
            return
        for button in self._offered:
            button.hide()
            button.deleteLater()
        self._offered = []
        for choice in choices:
            button = QPushButton(choice.text, self)
            button.setToolTip(choice.tip)
            is_primary = has_primary and not self._offered
            button.setObjectName("primary" if is_primary else "secondary")
            button.clicked.connect(lambda _checked=False, ask=choice.ask: ask())
            self._buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            self._offered.append(button)
