"""The version, the log bundle and the end of everything, as the user meets them. GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from studio.models.notices import Notice, NoticeLevel
from studio.services.support_service import BundleFile
from studio.views.context import Context
from studio.views.dialogs.about import AboutDialog
from studio.views.dialogs.confirm import Question, confirm
from studio.views.dialogs.log_bundle import LogBundleDialog
from studio.views.settings.privacy_page import PrivacyPage
from studio.views.words import tr


class SupportActions(QObject):
    """`quit_program` is called once the user has asked for everything to be deleted."""

    def __init__(
        self, context: Context, window: QWidget, *, quit_program: Callable[[], object]
    ) -> None:
        super().__init__(window)
        self._support = context.services.support
        self._tasks = context.tasks
        self._notices = context.services.notices
        self._window = window
        self._quit = quit_program
        self.dialog: LogBundleDialog | None = None

    def make_page(self, parent: QWidget) -> PrivacyPage:
        """The settings' page, with its buttons doing what they say."""
        page = PrivacyPage(self._support, self._tasks, parent)
        page.bundle_wanted.connect(self.create_bundle)
        page.delete_wanted.connect(lambda: self.ask_to_delete(page.window()))
        return page

    def create_bundle(self) -> None:
        """Collect a log bundle and show it."""
        self._tasks.start(self._collect())

    def show_about(self) -> AboutDialog:
        """Say which Layby this is."""
        dialog = AboutDialog(self.create_bundle, self._window)
        dialog.show()
        return dialog

    def ask_to_delete(self, parent: QWidget) -> None:
        """Delete everything but the models, if the user means it."""
        question = Question(
            text=tr("Delete all chats, settings, keys and logs?"),
            detail=tr("This cannot be undone. Layby quits; models stay where they are."),
            do=tr("Delete everything"),
        )
        confirm(question, self._delete, parent)

    def _delete(self) -> None:
        self._support.wants_all_deleted = True
        self._quit()

    async def _collect(self) -> None:
        files = await self._support.bundle()
        self.dialog = dialog = LogBundleDialog(files, self._window)
        dialog.save_wanted.connect(lambda path: self._tasks.start(self._save(files, path)))
        dialog.destroyed.connect(self._forget)
        dialog.show()

    async def _save(self, files: tuple[BundleFile, ...], path: Path) -> None:
        await self._support.save(files, path)
        self._notices.show(
            Notice(
                code="log_bundle_saved",
                level=NoticeLevel.INFO,
                text=tr("The log bundle is saved as {path}").format(path=path),
            )
        )

    def _forget(self) -> None:
        self.dialog = None
