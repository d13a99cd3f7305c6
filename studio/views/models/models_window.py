"""The window of models: the library, where models come from, and what is being downloaded. GUI thread."""

from __future__ import annotations

from enum import IntEnum

from PySide6.QtWidgets import QWidget

from studio.models.downloads import DownloadState
from studio.models.load_choices import SETTING_OF
from studio.services.machine import look_at_machine
from studio.views.context import Context
from studio.views.models.downloads_page import DownloadsPage
from studio.views.models.library_page import LibraryPage
from studio.views.models.model_words import machine_words
from studio.views.models.sources_page import SourcesPage
from studio.views.notices.notice_bar import NoticeBar
from studio.views.paged_dialog import PagedDialog
from studio.views.words import tr


class ModelsPage(IntEnum):
    """The pages in their order."""

    LIBRARY = 0
    SOURCES = 1
    DOWNLOADS = 2


class ModelsWindow(PagedDialog):
    """Stays open beside the main window. `notice_bar` has the notices, which would stand behind it there."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(tr("Models"), parent)
        self.notice_bar = NoticeBar(context.services.notices, context.theme, self)
        self.add_above(self.notice_bar)
        self._downloads = context.services.downloads
        self.library = LibraryPage(context, self)
        machine = machine_words(look_at_machine(context.watch.snapshot))
        self.sources = SourcesPage(context, machine, self)
        self.downloads = DownloadsPage(context, self)
        self.add_page(tr("Library"), self.library)
        self.add_page(tr("Get models"), self.sources)
        self.add_page("", self.downloads)
        self._disconnect = self._downloads.changed.connect(self._count)
        self.finished.connect(self._on_finished)
        self._count()

    def show_setting(self, key: str) -> None:
        if key in SETTING_OF.values():
            self.show_page(ModelsPage.LIBRARY)
            self.library.open_loaded_models_setting(key)
            return
        self.show_page(ModelsPage.SOURCES)
        self.sources.show_setting(key)

    def _count(self) -> None:
        """How many are not done stands beside the page's name."""
        number = sum(each.state is not DownloadState.DONE for each in self._downloads.downloads)
        title = tr("Downloads ({number})").format(number=number) if number else tr("Downloads")
        self.set_page_title(ModelsPage.DOWNLOADS, title)

    def _on_finished(self) -> None:
        self._disconnect()
        self.notice_bar.close_bar()
        for page in (self.library, self.sources, self.downloads):
            page.close_page()
