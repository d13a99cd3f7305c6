"""The page of models: those in the library, and those that other programs keep on this computer. GUI thread.

While it is seen it looks every few seconds whether files have come or gone.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QInputDialog,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.api import EngineState
from studio.models.model_library import FoundModel, ModelEntry, ModelSource
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.dialogs.file_dialog import file_dialog
from studio.views.flow_layout import FlowLayout
from studio.views.labels import line
from studio.views.models.load_dialog import LoadDialog
from studio.views.models.model_row import FoundRow, ModelRow, RowActions, Shown
from studio.views.paged_dialog import page_column, scrolled
from studio.views.words import size, tr

_LOOK_MS = 3000


class LibraryPage(QWidget):
    """`rows` by name, `found_rows` in their order."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._models = context.services.models
        self.rows: dict[str, ModelRow] = {}
        self.found_rows: list[FoundRow] = []
        self._shown_found: object = None
        inner = QWidget(self)
        column = page_column(inner)
        column.addLayout(self._heading(inner))
        self._empty = line("", "secondary", inner)
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        self._found_title = QLabel(tr("Found on this computer"), inner)
        self._found_title.setObjectName("title")
        self._found_hint = line(
            tr("They stay where they are: Layby only remembers the place."), "secondary", inner
        )
        self._found_list = QVBoxLayout()
        self._found_list.setSpacing(8)
        column.addWidget(self._empty)
        column.addLayout(self._list)
        column.addSpacing(8)
        found = QVBoxLayout()
        found.setSpacing(2)
        found.addWidget(self._found_title)
        found.addWidget(self._found_hint)
        column.addLayout(found)
        column.addLayout(self._found_list)
        column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scrolled(tr("Models"), inner, self))
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(lambda: context.tasks.start(self._models.refresh()))
        self._disconnects = (
            self._models.library_changed.connect(self.refresh),
            self._models.changed.connect(self.refresh),
            self._models.fetch_changed.connect(self.refresh),
        )
        self.refresh()

    def close_page(self) -> None:
        """Follow the services no longer."""
        self._timer.stop()
        for disconnect in self._disconnects:
            disconnect()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()
        self._look()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def refresh(self) -> None:
        """Show the library as the service knows it; rows of models that stay keep their widgets."""
        entries = {entry.name: entry for entry in self._entries()}
        for name in [name for name in self.rows if name not in entries]:
            self.rows.pop(name).deleteLater()
        for place, entry in enumerate(entries.values()):
            row, shown = self.rows.get(entry.name), self._shown(entry)
            if row is None:
                row = self.rows[entry.name] = ModelRow(shown, self._row_actions(), self)
            if self._list.indexOf(row) != place:
                self._list.insertWidget(place, row)
            row.show_model(shown)
        self._empty.setText(
            tr("There is no model yet. Add a file that you have, or get one under “Get models”.")
        )
        self._empty.setVisible(not entries)
        self._show_found()

    def _shown(self, entry: ModelEntry) -> Shown:
        models, is_fetched = self._models, entry.source is ModelSource.FETCHED
        offers = (each.name for each in models.catalog if each.file_name == entry.path.name)
        return Shown(
            entry=entry,
            facts=models.facts.get(entry.path),
            is_loaded=self._is_loaded(entry),
            offer=next(offers, "") if is_fetched else "",
            is_coming=models.fetching is not None,
        )

    def _show_found(self) -> None:
        models = self._models
        shown = tuple((found, models.facts.get(found.path)) for found in models.found)
        self._found_title.setVisible(bool(shown))
        self._found_hint.setVisible(bool(shown))
        if shown == self._shown_found:
            return
        self._shown_found = shown
        for row in self.found_rows:
            row.deleteLater()
        self.found_rows = [FoundRow(found, facts, self._use, self) for found, facts in shown]
        for row in self.found_rows:
            self._found_list.addWidget(row)

    def _heading(self, parent: QWidget) -> QVBoxLayout:
        title = QLabel(tr("Models"), parent)
        title.setObjectName("heading")
        buttons = QWidget(parent)
        row = FlowLayout(buttons, 8)
        for text, do in (
            (tr("Add a file…"), self._context.model_actions.add_file),
            (tr("Add a folder…"), self._context.model_actions.add_folder),
            (tr("Look again"), self._look),
        ):
            button = QPushButton(text, parent)
            button.setAutoDefault(False)
            button.clicked.connect(do)
            row.addWidget(button)
        column = QVBoxLayout()
        column.addWidget(title)
        column.addWidget(buttons)
        return column

    def _row_actions(self) -> RowActions:
        actions = self._context.model_actions
        return RowActions(
            load=actions.load,
            unload=actions.unload,
            load_settings=self.open_load_settings,
            rename=self._rename,
            locate=self._locate,
            remove=self._remove,
            add=self._add,
            get=actions.get,
        )

    def open_load_settings(self, name: str) -> LoadDialog | None:
        """The settings that hold for this model alone."""
        entry = self._entry(name)
        return None if entry is None else self._open_load_settings(entry)

    def open_loaded_models_setting(self, key: str) -> None:
        """What the loaded model has of its own before the setting for all with this key."""
        if (model := self._models.model) is None:
            return
        for dialog in self.findChildren(LoadDialog):
            if dialog.isVisible() and dialog.path == model.path:
                dialog.show_setting(key)
                dialog.activateWindow()
                return
        known = (entry for entry in self._entries() if entry.path == model.path)
        newly = ModelEntry(  # loaded since the library was looked at
            name=str(model.path),
            path=model.path,
            size_bytes=model.size_bytes,
            sha256=None,
            source=ModelSource.OUTSIDE,
        )
        self._open_load_settings(next(known, newly)).show_setting(key)

    def _open_load_settings(self, entry: ModelEntry) -> LoadDialog:
        dialog = LoadDialog(self._context, entry, self)
        dialog.open()
        return dialog

    def _rename(self, name: str) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle(tr("Rename"))
        dialog.setLabelText(tr("Programs that use the model over the API name it like this."))
        dialog.setTextValue(name)
        dialog.textValueSelected.connect(
            lambda new: self._context.tasks.start(self._models.rename(name, new))
        )
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _locate(self, name: str) -> None:
        if (entry := self._entry(name)) is None:
            return
        dialog = file_dialog(self, tr("Where is {model} now?").format(model=entry.title))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        is_outside = entry.source is ModelSource.OUTSIDE
        follow = self._add if is_outside else lambda path: self._relocate(name, path)
        dialog.fileSelected.connect(follow)
        dialog.open()

    def _relocate(self, name: str, path: str) -> None:
        self._context.tasks.start(self._models.relocate(name, Path(path)))

    def _add(self, path: str) -> None:
        self._context.tasks.start(self._models.add(Path(path)))

    def _remove(self, name: str) -> None:
        entry = self._entry(name)
        if entry is None:
            return
        if entry.source is not ModelSource.FETCHED or entry.is_missing:
            self._context.tasks.start(self._models.remove(name))
            return
        question = Question(
            text=tr("Delete {model}?").format(model=name),
            detail=tr("{size} become free. It would have to be downloaded again.").format(
                size=size(entry.size_bytes)
            ),
            do=tr("Delete"),
        )
        confirm(question, lambda: self._context.tasks.start(self._models.remove(name)), self)

    def _use(self, found: FoundModel) -> None:
        self._context.tasks.start(self._models.add_found(found))

    def _look(self) -> None:
        self._context.tasks.start(self._models.refresh())
        self._context.tasks.start(self._models.look_around())

    def _entry(self, name: str) -> ModelEntry | None:
        return next((entry for entry in self._entries() if entry.name == name), None)

    def _entries(self) -> tuple[ModelEntry, ...]:
        """The library, and what is in use beside it."""
        return (*self._models.entries, *self._models.outside)

    def _is_loaded(self, entry: ModelEntry) -> bool:
        model = self._models.model
        is_ready = self._models.state is EngineState.READY
        return is_ready and model is not None and model.path == entry.path
