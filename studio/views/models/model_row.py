"""One model in the library's list: what it is, whether it is loaded, and what can be done with it. GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QPushButton, QVBoxLayout, QWidget

from studio.models.model_library import FoundModel, ModelEntry, ModelFacts, ModelSource
from studio.views.elided_label import ElidedLabel
from studio.views.icon_button import IconButton
from studio.views.labels import line
from studio.views.models.model_words import entry_words, facts_words, problem_words
from studio.views.words import size, tr


@dataclass(frozen=True, slots=True, kw_only=True)
class RowActions:
    """What a row's buttons ask for; each is given the model's name."""

    load: Callable[[str], None]
    unload: Callable[[], None]
    load_settings: Callable[[str], object]
    rename: Callable[[str], None]
    locate: Callable[[str], None]
    remove: Callable[[str], None]
    add: Callable[[str], None]
    """Into the library."""
    get: Callable[[str], None]
    """Download it again; given the catalogue's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is known of a model now."""

    entry: ModelEntry
    facts: ModelFacts | None
    is_loaded: bool
    offer: str = ""
    """What the catalogue calls it, if it can be downloaded again."""
    is_coming: bool = False
    """A model of the catalogue is being fetched."""


class ModelRow(QFrame):
    """`show_model` brings it up to date; the widgets stay, and with them the focus."""

    def __init__(self, shown: Shown, actions: RowActions, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self._shown = shown
        self._actions = actions
        self._name = ElidedLabel(self)
        self._name.setObjectName("title")
        self._state = QLabel(self)
        self._state.setObjectName("badge")
        self._facts = line("", "secondary", self)
        self._problem = line("", "failed", self)
        self._missing = line("", "waiting", self)
        self.main = QPushButton(self)
        self.main.clicked.connect(lambda: self._main[1]())
        self.more = IconButton("more", tr("More"), self)
        self.more.clicked.connect(self.open_menu)
        self.menu = QMenu(self)
        self._lay_out()

    @property
    def name(self) -> str:
        return self._shown.entry.name

    def show_model(self, shown: Shown) -> None:
        """Bring it up to date."""
        self._shown = shown
        entry, facts, is_loaded = shown.entry, shown.facts, shown.is_loaded
        self._name.set_text(entry.title)
        words = entry_words(entry, facts, is_loaded=is_loaded)
        is_wrong = facts is not None and facts.info is None and not entry.is_missing
        used = self._missing if entry.is_missing else self._problem if is_wrong else self._facts
        for label in (self._facts, self._missing, self._problem):
            label.setText(words if label is used else "")
            label.setVisible(label is used)
        self._state.setText(tr("Loaded") if is_loaded else tr("Missing"))
        self._state.setVisible(entry.is_missing or is_loaded)
        text, _ = self._main
        self.main.setText(text)
        self.main.setEnabled(not (entry.is_missing and shown.is_coming))
        self.main.setAccessibleName(f"{text}: {entry.title}")
        self.more.set_label(tr("More about {model}").format(model=entry.title))
        self.setToolTip(str(entry.path))

    def open_menu(self) -> None:
        """Everything else that can be done."""
        self.fill_menu()
        self.menu.popup(self.more.mapToGlobal(QPoint(0, self.more.height() + 2)))

    def fill_menu(self) -> None:
        menu, entry, actions = self.menu, self._shown.entry, self._actions
        menu.clear()
        menu.addAction(tr("Load settings…"), lambda: actions.load_settings(entry.name)).setEnabled(
            not entry.is_missing
        )
        menu.addAction(tr("Show in its folder"), lambda: show_in_folder(entry.path))
        is_own = entry.source is ModelSource.FETCHED
        if entry.is_missing or entry.source is ModelSource.LINKED:
            menu.addAction(tr("It lies elsewhere now…"), lambda: actions.locate(entry.name))
        if entry.source is ModelSource.OUTSIDE:
            add = menu.addAction(tr("Add to the library"), lambda: actions.add(entry.name))
            add.setEnabled(not entry.is_missing)
            return
        menu.addAction(tr("Rename…"), lambda: actions.rename(entry.name))
        menu.addSeparator()
        words = tr("Delete…") if is_own and not entry.is_missing else tr("Take off the list")
        remove = menu.addAction(words, lambda: actions.remove(entry.name))
        remove.setEnabled(entry.source is not ModelSource.FOUND)

    @property
    def _main(self) -> tuple[str, Callable[[], None]]:
        """What the button says, and does."""
        shown, actions = self._shown, self._actions
        name = shown.entry.name
        if shown.is_loaded:
            return tr("Unload"), actions.unload
        if shown.entry.is_missing and shown.offer:
            return tr("Download again"), lambda: actions.get(shown.offer)
        if shown.entry.is_missing:
            return tr("Where is it?"), lambda: actions.locate(name)
        return tr("Load"), lambda: actions.load(name)

    def _lay_out(self) -> None:
        heading = QHBoxLayout()
        heading.setSpacing(8)
        heading.addWidget(self._name)
        heading.addWidget(self._state)
        heading.addStretch(1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addLayout(heading)
        words.addWidget(self._facts)
        words.addWidget(self._missing)
        words.addWidget(self._problem)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 12, 12, 12)
        layout.setSpacing(8)
        layout.addLayout(words, 1)
        layout.addWidget(self.main, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self.more, 0, Qt.AlignmentFlag.AlignVCenter)


class FoundRow(QFrame):
    """A model of another program, which can be linked."""

    def __init__(
        self,
        found: FoundModel,
        facts: ModelFacts | None,
        use: Callable[[FoundModel], None],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("card")
        self.setToolTip(str(found.path))
        name = ElidedLabel(self)
        name.setObjectName("title")
        name.set_text(found.name)
        badge = QLabel(found.finder.value, self)
        badge.setObjectName("badge")
        problem = problem_words(facts) if facts is not None else ""
        known = facts_words(facts.info) if facts is not None and facts.info is not None else ""
        words = problem or known or size(found.size_bytes)
        self.button = QPushButton(tr("Use"), self)
        self.button.setAccessibleName(tr("Use: {model}").format(model=found.name))
        self.button.setEnabled(not problem)
        self.button.clicked.connect(lambda: use(found))
        heading = QHBoxLayout()
        heading.setSpacing(8)
        heading.addWidget(name)
        heading.addWidget(badge)
        heading.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(2)
        column.addLayout(heading)
        column.addWidget(line(words, "failed" if problem else "secondary", self))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 12, 12, 12)
        layout.setSpacing(8)
        layout.addLayout(column, 1)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)


def show_in_folder(path: Path) -> None:
    """Open the folder that holds a model in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(path if path.is_dir() else path.parent)))
