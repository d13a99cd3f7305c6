"""One setting in the dialog: title, widget, what it does, where its value comes from, when it counts. GUI thread."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from studio.models.errors import SettingError
from studio.models.setting_field import SettingField, SettingKind, SettingValue
from studio.services.settings_service import SettingsService
from studio.views.error_words import error_sentence
from studio.views.labels import line
from studio.views.settings.editors import make_editor
from studio.views.settings.setting_words import applies_words, help_words, source_words
from studio.views.words import tr


class SettingRow(QWidget):
    """Changes the setting as soon as the user has given a value; a refusal stands under it until the next try."""

    def __init__(self, declared: SettingField, settings: SettingsService, parent: QWidget) -> None:
        super().__init__(parent)
        self.declared = declared
        self._settings = settings
        self.editor = make_editor(declared, self)
        self.editor.edited.connect(self._on_edited)
        self.editor.refused.connect(self._show_problem)
        self._help = line("", "secondary", self)
        self._fixed = line("", "waiting", self)
        self._problem = line("", "failed", self)
        self._column = layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        if declared.kind is not SettingKind.SWITCH:
            title = QLabel(tr(declared.info.title), self)
            title.setBuddy(self.editor)
            title.setWordWrap(True)
            layout.addWidget(title)
        for widget in (self.editor, self._help, self._fixed, self._problem):
            layout.addWidget(widget)
        applies = applies_words(declared.info.applies)
        self._help.setText(" ".join(part for part in (help_words(declared.info), applies) if part))
        self._problem.hide()
        self.refresh()

    def add_note(self, note: QWidget) -> None:
        """Have something more said under it."""
        self._column.addWidget(note)

    def refresh(self) -> None:
        """Show the value in force, and whether it can be changed here."""
        key = self.declared.key
        fixed = source_words(self.declared.info, self._settings.source(key))
        self.editor.show_value(self._settings.settings.value(key))
        self.editor.setEnabled(not fixed)
        self._fixed.setText(fixed)
        self._fixed.setVisible(bool(fixed))

    def _on_edited(self, value: SettingValue) -> None:
        try:
            self._settings.change(self.declared.key, value)
        except SettingError as error:
            self._show_problem(error)
        else:
            self._problem.hide()
            self.refresh()

    def _show_problem(self, error: SettingError) -> None:
        self._problem.setText(error_sentence(error))
        self._problem.show()
        self.refresh()
