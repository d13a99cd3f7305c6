"""The button that sets a page of settings back to its defaults, after a question. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget

from studio.models.errors import SettingError
from studio.models.settings import setting_field
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingSource, SettingsService
from studio.views.dialogs.confirm import Question, confirm
from studio.views.words import tr


class RestoreButton(QPushButton):
    """Off while nothing on the page differs. `question` is the open one, or None."""

    def __init__(self, settings: SettingsService, notices: NoticeService, parent: QWidget) -> None:
        super().__init__(tr("Restore the defaults of this page"), parent)
        self.question: QMessageBox | None = None
        self._settings = settings
        self._notices = notices
        self._keys: Sequence[str] = ()
        self.setAutoDefault(False)
        self.clicked.connect(self._ask)

    def show_keys(self, keys: Sequence[str]) -> None:
        """The settings of the page, by their keys; without any it is not seen."""
        self._keys = keys
        self.setVisible(bool(keys))
        self.refresh()

    def refresh(self) -> None:
        """A setting has changed."""
        self.setEnabled(bool(self._changed()))

    def _changed(self) -> list[str]:
        return [key for key in self._keys if self._settings.source(key) is SettingSource.FILE]

    def _ask(self) -> None:
        names = ", ".join(tr(setting_field(key).info.title) for key in self._changed())
        question = Question(
            text=tr("Restore the defaults of this page?"),
            detail=tr("This sets back: {names}.").format(names=names),
            do=tr("Restore"),
        )
        self.question = confirm(question, self._restore, self.window())
        self.question.finished.connect(self._forget)

    def _forget(self) -> None:
        self.question = None

    def _restore(self) -> None:
        try:
            for key in self._changed():
                self._settings.reset(key)
        except SettingError as error:
            self._notices.report(error)
